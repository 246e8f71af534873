package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/passbook-run/passbook/browser"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// TakeScreenshots takes pictures of the artifact with one browser and stores them. That it could not is a result: the workflow decides
// whether to try again or to go on without.
func (a *Activities) TakeScreenshots(ctx context.Context, in work.ShotsInput) (work.ShotsResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.ShotsResult{}, err
	}
	call, err := pictured(in)
	if err != nil {
		return work.ShotsResult{}, err
	}
	l := ledger{s: s, call: call}
	if res, err := recordedShots(ctx, l, in); res != nil || err != nil {
		return *cmp.Or(res, &work.ShotsResult{}), err
	}
	page, err := load(ctx, s, in.Artifact.Digest)
	if err != nil {
		return work.ShotsResult{}, err
	}
	defer beat(ctx, in.HeartbeatMS, func() any { return work.Heartbeat{Host: a.cfg.Host} })()
	began := time.Now()
	req := browser.Request{Kinds: in.Shots.Kinds}
	for _, size := range in.Shots.Sizes {
		req.Sizes = append(req.Sizes, browser.Size{W: size.Width, H: size.Height})
	}
	taken, mended, err := a.shoot(ctx, browser.Page{HTML: page, Name: in.Name}, req, in.Shots.Install)
	if err != nil {
		res := work.ShotsResult{DurationMS: since(began), Message: oneLine(err), Permanent: errors.Is(err, browser.ErrNotFound), Troubles: mended}
		if !in.Last && !res.Permanent {
			return res, nil
		}
		return res, keepShots(ctx, l, res) // a replay is to go on without pictures as well
	}
	manifest, err := storeShots(ctx, s, taken.Shots)
	if err != nil {
		return work.ShotsResult{}, err
	}
	res := work.ShotsResult{Manifest: manifest, Count: len(taken.Shots), DurationMS: since(began), Troubles: mended}
	return res, keepShots(ctx, l, res)
}

// oneLine is an error for the logs: a browser that does not start quotes all that it has said, line by line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func storeShots(ctx context.Context, s *store.Store, shots []browser.Shot) (run.Blob, error) {
	var list []run.Shot
	for _, shot := range shots {
		b, err := keepData(ctx, s, shot.PNG)
		if err != nil {
			return run.Blob{}, err
		}
		list = append(list, run.Shot{Name: shot.Name, Digest: b.Digest, Size: b.Size, Width: shot.Width, Height: shot.Height})
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return run.Blob{}, err
	}
	return keepData(ctx, s, raw)
}
