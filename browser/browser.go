// Package browser takes pictures of a page with a real Chromium.
//
// One call of [Shoot] starts one browser, takes every picture of the request,
// and ends with no process and no file left, also when the browser hangs or
// dies. The page is served on the loopback interface and can reach nothing
// else: every other request is refused and named in the result. Time, fonts and
// motion are held still, so that the same page gives the same pictures.
//
// It speaks the browser's own protocol over a pipe; no port is opened for that.
// It does not judge the page: an error of the page's scripts is no error here.
package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrTimeout says that the pictures were not done in the time allowed. The
// browser is gone.
var ErrTimeout = errors.New("the browser took too long")

// Kinds of pictures.
const (
	Full     = "full"     // the whole page, as wide as the size
	Viewport = "viewport" // the top of the page, exactly the size
	Scroll   = "scroll"   // the same, scrolled on by one height each
)

const (
	defaultTimeout = time.Minute

	// MaxHeight is the most of a page that is pictured, in CSS pixels. It is
	// the longest side of a picture that Chromium can draw.
	MaxHeight = 16384
	maxSide   = 8192
)

// Options say which browser to use and how.
type Options struct {
	Exec    string        // the program; empty: [Find] looks for it
	Timeout time.Duration // for the whole call; zero: a minute
	TempDir string        // where the profile lives meanwhile; empty: the system's
}

// Page is a document that needs nothing but itself.
type Page struct {
	HTML []byte
	Name string // for errors
}

// Size is a viewport in CSS pixels, which are the pixels of the pictures too.
type Size struct{ W, H int }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.W, s.H) }

// Request says which pictures to take: each kind at each size.
type Request struct {
	Sizes []Size
	Kinds []string
}

// Shot is one picture.
type Shot struct {
	Name          string // full-1440x900.png, scroll-1440x900-step1.png
	Kind          string
	Width, Height int // of the picture
	Step          int // of a scroll: how many heights down, from 1
	PNG           []byte
}

// Result is what a call gave.
type Result struct {
	Shots   []Shot   // by size as asked for, then full, viewport, scroll
	Blocked []string // what the page asked for and did not get, sorted
	Notes   []string // what the pictures do not show
}

// Shoot takes the pictures (requirement 002 §4.3.5). Its errors are
// [ErrNotFound], [ErrTimeout], the end of ctx, or what went wrong, with the page
// and the size.
func Shoot(ctx context.Context, o Options, p Page, r Request) (Result, error) {
	res, err := shoot(ctx, o, p, r)
	if err != nil {
		return Result{}, fmt.Errorf("screenshots of %s: %w", p.Name, err)
	}
	return res, nil
}

func shoot(ctx context.Context, o Options, p Page, r Request) (Result, error) {
	if err := r.check(); err != nil {
		return Result{}, err
	}
	exec, err := findFor(ctx, o.Exec)
	if err != nil {
		return Result{}, err
	}
	limit := o.Timeout
	if limit <= 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: not done after %s", ErrTimeout, limit))
	defer cancel()
	site, err := serve(p.HTML)
	if err != nil {
		return Result{}, err
	}
	defer site.close()
	b, err := launch(ctx, exec, o.TempDir, site)
	if err != nil {
		return Result{}, because(ctx, fmt.Errorf("start %s: %w", exec, err))
	}
	res, err := b.shootAll(r)
	err = because(ctx, err)
	return res, errors.Join(err, b.close())
}

// because gives the reason for which ctx ended, if it did: all else follows
// from that.
func because(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
}

// shootAll works on all sizes at once, each in a window of its own.
func (b *chromium) shootAll(r Request) (Result, error) {
	results := make([]Result, len(r.Sizes))
	errs := make([]error, len(r.Sizes))
	var all sync.WaitGroup
	for i, size := range r.Sizes {
		all.Go(func() {
			results[i], errs[i] = b.shootSize(size, r.Kinds)
			if errs[i] != nil {
				errs[i] = fmt.Errorf("at %s: %w", size, errs[i])
			}
		})
	}
	all.Wait()
	var sum Result
	for _, one := range results {
		sum.Shots = append(sum.Shots, one.Shots...)
		sum.Blocked = append(sum.Blocked, one.Blocked...)
		sum.Notes = append(sum.Notes, one.Notes...)
	}
	slices.Sort(sum.Blocked)
	sum.Blocked = slices.Compact(sum.Blocked)
	return sum, errors.Join(errs...)
}

func (r Request) check() error {
	if len(r.Sizes) == 0 || len(r.Kinds) == 0 {
		return errors.New("nothing is asked for: at least one size and one kind are needed")
	}
	for i, s := range r.Sizes {
		if s.W < 1 || s.H < 1 || s.W > maxSide || s.H > maxSide {
			return fmt.Errorf("size %s: each side must be from 1 to %d", s, maxSide)
		}
		if slices.Contains(r.Sizes[:i], s) {
			return fmt.Errorf("size %s is asked for twice", s)
		}
	}
	for _, k := range r.Kinds {
		if k != Full && k != Viewport && k != Scroll {
			return fmt.Errorf("kind %q: only %s, %s and %s are known", k, Full, Viewport, Scroll)
		}
	}
	return nil
}
