package browser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var errCrashed = errors.New("the page crashed the browser's tab: it may need too much memory")

// world is the isolated world of this package's scripts, which the page cannot change.
const world = "passbook"

// tab is the page at one size.
type tab struct {
	size   Size
	target *chromedp.Target
	height int                        // of the page, at most MaxHeight
	world  runtime.ExecutionContextID // of this package's scripts
}

// shootSize opens the page in a new window and takes its screenshots.
func (b *chromium) shootSize(size Size, kinds []string) (Result, error) {
	crash, fail := context.WithCancelCause(b.ctx)
	defer fail(nil)
	ctx, cancel := chromedp.NewContext(crash, chromedp.WithNewBrowserContext())
	defer cancel()
	g := &requestFilter{ctx: ctx, origin: "http://" + b.site.addr + "/", fail: fail}
	if err := chromedp.Listen(ctx, g.handle); err != nil {
		return Result{}, fmt.Errorf("open a window: %w", err)
	}
	t := &tab{size: size, target: chromedp.FromContext(ctx).Target}
	res, err := t.shoot(ctx, b.site.url(), kinds)
	if err != nil && errors.Is(context.Cause(crash), errCrashed) {
		err = errCrashed // other errors follow from it
	}
	res.Blocked = g.blockedURLs()
	return res, err
}

func (t *tab) shoot(ctx context.Context, url string, kinds []string) (Result, error) {
	if err := t.prepare(ctx); err != nil {
		return Result{}, fmt.Errorf("prepare a window: %w", err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		return Result{}, fmt.Errorf("load the page: %w", err)
	}
	if err := t.measure(ctx); err != nil {
		return Result{}, err
	}
	return t.shots(ctx, kinds)
}

func (t *tab) prepare(ctx context.Context) error {
	return errors.Join(
		call(ctx, t, inspector.Enable, cdp.Empty{}),
		call(ctx, t, fetch.Enable, fetch.EnableParams{}),
		call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(t.size.W), Height: int64(t.size.H), DeviceScaleFactor: 1,
		}),
		call(ctx, t, emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true}),
		call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}},
		}),
		call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: freezeJS, WorldName: world,
		}),
	)
}

// measure waits for the page to be drawn and measures it.
func (t *tab) measure(ctx context.Context) error {
	ours, err := cdp.Call(ctx, t.target, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{
		FrameID: cdp.FrameID(t.target.TargetID), WorldName: world,
	})
	if err != nil {
		return fmt.Errorf("reach into the page: %w", err)
	}
	t.world = ours.ExecutionContextID
	if err := t.run(ctx, waitDrawnJS); err != nil {
		return fmt.Errorf("wait for the page to be drawn: %w", err)
	}
	metrics, err := cdp.Call(ctx, t.target, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return fmt.Errorf("measure the page: %w", err)
	}
	t.height = max(int(math.Ceil(metrics.CSSContentSize.Height)), t.size.H)
	return nil
}

// shots takes the screenshots from top to bottom, then the whole page, so that content loaded on scrolling is
// included.
func (t *tab) shots(ctx context.Context, kinds []string) (Result, error) {
	var res Result
	if t.height > MaxHeight {
		res.Notes = append(res.Notes,
			fmt.Sprintf("the page is %d pixels high at %s; the pictures show the first %d", t.height, t.size,
				MaxHeight))
		t.height = MaxHeight
	}
	steps := (t.height+t.size.H-1)/t.size.H - 1
	for step := 0; step <= steps; step++ {
		kind := Scroll
		if step == 0 {
			kind = Viewport
		}
		wanted := slices.Contains(kinds, kind)
		if !wanted && !slices.Contains(kinds, Full) {
			continue
		}
		shot, err := t.picture(ctx, kind, step, wanted)
		if err != nil {
			return res, err
		}
		if wanted {
			res.Shots = append(res.Shots, shot)
		}
	}
	if !slices.Contains(kinds, Full) {
		return res, nil
	}
	full, err := t.picture(ctx, Full, 0, true)
	res.Shots = append([]Shot{full}, res.Shots...)
	return res, err
}

// picture scrolls to a step and takes the screenshot if wanted.
func (t *tab) picture(ctx context.Context, kind string, step int, wanted bool) (Shot, error) {
	shot := Shot{Name: name(kind, t.size, step), Kind: kind, Step: step, Width: t.size.W, Height: t.size.H}
	if err := t.run(ctx, fmt.Sprintf(scrollJS, step*t.size.H)); err != nil {
		return shot, fmt.Errorf("%s: scroll to it: %w", shot.Name, err)
	}
	if !wanted {
		return shot, nil
	}
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if kind == Full {
		shot.Height = t.height
		params.CaptureBeyondViewport = new(true)
		params.Clip = &page.Viewport{Width: float64(shot.Width), Height: float64(shot.Height), Scale: 1}
	}
	picture, err := cdp.Call(ctx, t.target, page.CaptureScreenshot, params)
	if err != nil {
		return shot, fmt.Errorf("%s: %w", shot.Name, err)
	}
	shot.PNG = picture.Data
	return shot, nil
}

// run runs a script in the isolated world and awaits its promise.
func (t *tab) run(ctx context.Context, script string) error {
	res, err := cdp.Call(ctx, t.target, runtime.Evaluate, runtime.EvaluateParams{
		Expression: script, ContextID: t.world, AwaitPromise: new(true),
	})
	if err == nil && res.ExceptionDetails != nil {
		err = fmt.Errorf("a script failed in the page: %s", res.ExceptionDetails.Text)
	}
	return err
}

// call sends a command and returns its error.
func call[P, R any](ctx context.Context, t *tab, c cdp.Command[P, R], params P) error {
	_, err := cdp.Call(ctx, t.target, c, params)
	return err
}

func name(kind string, s Size, step int) string {
	if kind == Scroll {
		return fmt.Sprintf("%s-%s-step%d.png", kind, s, step)
	}
	return fmt.Sprintf("%s-%s.png", kind, s)
}
