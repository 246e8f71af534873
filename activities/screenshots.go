package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TakeScreenshots takes screenshots of the artifact with one browser and stores them. A failure is a result: the
// workflow decides whether to retry or to continue without.
func (a *Activities) TakeScreenshots(ctx context.Context, in contract.ShotsInput) (contract.ShotsResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.ShotsResult{}, err
	}
	call, err := shotsCallID(in)
	if err != nil {
		return contract.ShotsResult{}, err
	}
	l := calls.Ledger{Store: s, Call: call}
	if res, err := recordedShots(ctx, l, in); res != nil || err != nil {
		return *cmp.Or(res, &contract.ShotsResult{}), err
	}
	page, err := blobs.Get(ctx, s, in.Artifact.Digest)
	if err != nil {
		return contract.ShotsResult{}, err
	}
	defer startHeartbeat(ctx, in.HeartbeatMS, func() any { return contract.Heartbeat{Host: a.cfg.Host} })()
	began := time.Now()
	req := browser.Request{Kinds: in.Shots.Kinds}
	for _, size := range in.Shots.Sizes {
		req.Sizes = append(req.Sizes, browser.Size{W: size.Width, H: size.Height})
	}
	taken, recovered, err := a.takeShots(ctx, browser.Page{HTML: page, Name: in.Name}, req, in.Shots.Install)
	if err != nil {
		res := contract.ShotsResult{
			DurationMS: elapsedMS(began), Message: oneLine(err), Recovered: recovered,
		}
		if !in.Last {
			return res, nil
		}
		return res, storeShotsResult(ctx, l, res) // a replay must continue without screenshots too
	}
	manifest, err := storeShots(ctx, s, taken.Shots)
	if err != nil {
		return contract.ShotsResult{}, err
	}
	res := contract.ShotsResult{
		Manifest: manifest, Count: len(taken.Shots), DurationMS: elapsedMS(began), Recovered: recovered,
	}
	return res, storeShotsResult(ctx, l, res)
}

// oneLine formats an error for logs: browsers quote their output line by line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func storeShots(ctx context.Context, s *store.Store, shots []browser.Shot) (run.Blob, error) {
	var list []run.Shot
	for _, shot := range shots {
		b, err := blobs.Put(ctx, s, shot.PNG)
		if err != nil {
			return run.Blob{}, err
		}
		list = append(list, run.Shot{Name: shot.Name, Digest: b.Digest, Size: b.Size, Width: shot.Width,
			Height: shot.Height})
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return run.Blob{}, err
	}
	return blobs.Put(ctx, s, raw)
}
