// Package browser takes screenshots of a page with Chromium.
//
// Each call of [Shoot] starts one browser, takes all screenshots and leaves no process or file behind, even if the
// browser hangs or crashes. The page is served on the loopback interface and has no other network access: other
// requests are blocked and listed in the result. Time, fonts and motion are fixed, so the same page has the same
// screenshots.
//
// The browser is controlled through a pipe; no debugging port is opened. Script errors of the page are ignored.
package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrTimeout means that the screenshots were not finished in time. The browser was killed.
var ErrTimeout = errors.New("the browser took too long")

// Kinds of screenshots.
const (
	Full     = "full"     // the whole page, with the width of the size
	Viewport = "viewport" // the top of the page, exactly the size
	Scroll   = "scroll"   // like viewport, scrolled by one height each
)

const (
	defaultTimeout = time.Minute

	// MaxHeight is the maximum height of a screenshot in CSS pixels, which is Chromium's limit.
	MaxHeight = 16384
	maxSide   = 8192
)

// Options configure the browser.
type Options struct {
	Exec    string        // path or name; empty: see [Find]
	Timeout time.Duration // for the whole call; zero: a minute
	TempDir string        // folder for the profile; empty: the system's
}

// Page is a self-contained document.
type Page struct {
	HTML []byte
	Name string // for errors
}

// Size is a viewport in CSS pixels, which equal the pixels of the screenshots.
type Size struct{ W, H int }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.W, s.H) }

// Request lists the screenshots: each kind at each size.
type Request struct {
	Sizes []Size
	Kinds []string
}

// Shot is one screenshot.
type Shot struct {
	Name          string // full-1440x900.png, scroll-1440x900-step1.png
	Kind          string
	Width, Height int // of the picture
	Step          int // of a scroll: number of heights scrolled, from 1
	PNG           []byte
}

// Result is the result of a call.
type Result struct {
	Shots   []Shot   // by requested size, then full, viewport, scroll
	Blocked []string // blocked requests of the page, sorted
	Notes   []string // what the screenshots omit
}

// Shoot takes the screenshots (requirement 002 §4.3.5). Its errors are [ErrNotFound], [ErrTimeout], the end of
// ctx, or another error with page and size.
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
		return Result{}, withCause(ctx, fmt.Errorf("start %s: %w", exec, err))
	}
	res, err := b.shootAll(r)
	err = withCause(ctx, err)
	return res, errors.Join(err, b.close())
}

// withCause returns the reason why ctx ended, if it did: other errors follow from it.
func withCause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
}

// shootAll takes the screenshots of all sizes concurrently, each in its own window.
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
		return errors.New("no screenshots requested: want at least one size and one kind")
	}
	for i, s := range r.Sizes {
		if s.W < 1 || s.H < 1 || s.W > maxSide || s.H > maxSide {
			return fmt.Errorf("size %s: each side must be from 1 to %d", s, maxSide)
		}
		if slices.Contains(r.Sizes[:i], s) {
			return fmt.Errorf("duplicate size %s", s)
		}
	}
	for _, k := range r.Kinds {
		if k != Full && k != Viewport && k != Scroll {
			return fmt.Errorf("unknown kind %q: want %s, %s or %s", k, Full, Viewport, Scroll)
		}
	}
	return nil
}
