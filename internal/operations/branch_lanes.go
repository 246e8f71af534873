package operations

import (
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// givenLanes lets a copy of a run merge what lanes of the run left that are done and were not merged. A lane whose
// directory is lost begins again in the copy.
func givenLanes(ctx context.Context, s *store.Store, from Origin, l *run.Lanes, stage string) (*run.Lanes, error) {
	if l == nil || len(l.Unmerged()) == 0 {
		return l, nil
	}
	var list contract.LaneList
	if err := s.GetJSON(ctx, store.Digest(l.Digest), &list); err != nil {
		return l, fmt.Errorf("read the list of stage %s: %w", stage, err)
	}
	given := contract.LaneTrees{Version: 1, Lanes: map[int]contract.LaneTree{}}
	if l.Given != "" { // the run is a copy too
		if err := s.GetJSON(ctx, store.Digest(l.Given), &given); err != nil {
			return l, fmt.Errorf("read the lanes of stage %s: %w", stage, err)
		}
	}
	for _, n := range l.Unmerged() {
		if n.Index >= len(list.Items) {
			return l, fmt.Errorf("the list of stage %s has %d items", stage, len(list.Items))
		}
		item := list.Items[n.Index]
		place := run.LanePlace{Index: n.Index, Key: item.Key, Name: item.Name, Suffix: n.Suffix}
		err := error(rundir.ErrNoRun)
		if from.Dir != nil {
			start, state, rerr := rundir.At(from.Dir.Path(place.Dir(stage))).EndedLane()
			if err = rerr; err == nil {
				given.Lanes[n.Index] = contract.LaneTreeOf(start, state)
			}
		}
		if _, there := given.Lanes[n.Index]; err != nil && (!there || n.Suffix != "") {
			delete(given.Lanes, n.Index)
			place.Suffix = ""
			l = l.Redo(place)
		}
	}
	digest, err := s.PutJSON(ctx, given)
	if err != nil {
		return l, err
	}
	copied := *l
	copied.Given, copied.Since, copied.Others = string(digest), nil, nil
	return &copied, nil
}
