package run

import (
	"slices"
)

// inLane folds an event of a lane into the state as the lane sees it.
func (f *folder) inLane(e *Event, r *kindRow) {
	if _, active := f.Lane(e.Lane); e.Lane == "" || f.Lanes == nil || !active || r == nil || r.ofLanes {
		f.applyOne(e, r)
		return
	}
	own := f.own
	f.own, f.State = false, f.InLane(e.Lane) // the slices of a view are those of the run
	f.applyOne(e, r)
	f.own = own
	if f.lane != nil {
		f.State = f.leaveLane()
	}
}

// expandStage begins the lanes of a stage.
func (f *folder) expandStage(e *Event) {
	p := decoded[StageExpanded](e)
	f.Lanes = &Lanes{Stage: f.Next.Stage, Count: p.Count, Digest: p.Digest, Base: f.Tree}
	f.head(e)
}

func (f *folder) startLane(e *Event) {
	p := decoded[LaneStarted](e)
	if f.Lanes == nil || len(f.Lanes.Active) >= MaxActiveLanes+MaxWaitingLanes {
		return
	}
	f.State = f.withLane(Lane{Index: p.Index, Key: e.Lane, Name: p.Name, Slot: f.Lanes.freeSlot()})
	f.Lanes.Begun = max(f.Lanes.Begun, p.Index+1)
}

// freeSlot returns the lowest slot that no active lane has.
func (l *Lanes) freeSlot() int {
	for slot := 0; ; slot++ {
		if !slices.ContainsFunc(l.Active, func(a Lane) bool { return a.Slot == slot }) {
			return slot
		}
	}
}

// waitLane makes a lane wait. One whose changes conflict has finished, and is active again.
func (f *folder) waitLane(e *Event) {
	p := decoded[LaneWaiting](e)
	if f.Lanes == nil {
		return
	}
	l, ok := f.Lane(e.Lane)
	if !ok {
		l = Lane{Index: p.Index, Key: e.Lane, Name: p.Name, Slot: f.Lanes.freeSlot()}
		for _, done := range f.Lanes.Finished {
			if done.Index == p.Index {
				l.Base, l.Tree = done.Base, done.Tree
			}
		}
	}
	l.Waiting = &p.LaneWait
	f.State = f.withLane(l)
	if d := f.Decided; d != nil && d.Round == p.Index+1 {
		f.Decided = nil // it was about an earlier question of the lane
	}
	if !ok {
		f.dropFinished(p.Index)
		f.Lanes.Done--
	}
	f.landLane(e.Lane)
	f.head(e)
}

func (f *folder) continueLane(e *Event) {
	p := decoded[LaneContinued](e)
	l, ok := f.Lane(e.Lane)
	if !ok {
		return
	}
	l.Waiting, l.Step, l.Settled, l.Tries, l.Started = nil, p.Step, nil, nil, nil
	if l.Waived = p.Action == ActionContinueWithWaiver; p.Redo {
		l.Redo++
	}
	if p.Tree != nil {
		l.Base, l.Tree, l.Replies, l.Values, l.Verdict, l.Judged, l.Tamper = p.Tree, nil, nil, nil, "", nil, nil
	}
	f.State = f.withLane(l)
	f.head(e)
}

func (f *folder) endLane(e *Event) {
	p := decoded[LaneEnded](e)
	l, ok := f.Lane(e.Lane)
	if !ok {
		return
	}
	lanes := *f.Lanes
	lanes.Active = slices.DeleteFunc(slices.Clone(lanes.Active), func(a Lane) bool { return a.Key == e.Lane })
	row := FinishedLane{Index: l.Index, Key: l.Key, Name: l.Name, Base: l.Base, Tree: p.Tree}
	if row.Verdict = l.Verdict; l.Judged != nil && !l.Judged.Outdated && p.Tree != nil {
		row.Approved = l.Judged.Approved
	}
	at, _ := slices.BinarySearchFunc(lanes.Finished, row.Index, func(r FinishedLane, i int) int { return r.Index - i })
	lanes.Finished = slices.Insert(slices.Clone(lanes.Finished), at, row)
	if p.Outcome == LaneOutcomeDone {
		lanes.Done++
	} else {
		lanes.Failed++
	}
	f.Lanes = &lanes
	f.landLane(e.Lane)
	f.advanceMerge()
	f.head(e)
}

func (f *folder) mergeLane(e *Event) {
	p := decoded[LaneMerged](e)
	if f.Lanes == nil {
		return
	}
	lanes := *f.Lanes
	f.Lanes = &lanes
	if f.Tree = &p.Tree; p.Commit != "" {
		f.Commit = p.Commit
	}
	f.touch(p.Files, p.Changed)
	f.judgeLane(p.Index)
	f.dropFinished(p.Index)
	f.Lanes.Merged = p.Index + 1
	f.advanceMerge()
	at := f.Next
	f.Changed = &at
	f.head(e)
}

// judgeLane adopts the verdict of a lane. The work is approved if the verdicts of all merged lanes approve it.
func (f *folder) judgeLane(index int) {
	f.outdate()
	f.Verdict, f.Approved = "", nil
	for _, row := range f.Lanes.Finished {
		if row.Index != index || row.Approved == nil {
			continue
		}
		f.Lanes.Doubted = f.Lanes.Doubted || !*row.Approved
		yes := !f.Lanes.Doubted
		f.Verdict, f.Approved = row.Verdict, &yes
		f.Judged = &Judged{Word: row.Verdict, Approved: &yes, Phase: f.Phase, Round: 1}
	}
}

func (f *folder) dropFinished(index int) {
	f.Lanes.Finished = slices.DeleteFunc(slices.Clone(f.Lanes.Finished),
		func(r FinishedLane) bool { return r.Index == index })
}

// advanceMerge skips lanes with nothing to merge.
func (f *folder) advanceMerge() {
	for len(f.Lanes.Finished) > 0 && f.Lanes.Finished[0].Index == f.Lanes.Merged && f.Lanes.Finished[0].Tree == nil {
		f.Lanes.Finished = f.Lanes.Finished[1:]
		f.Lanes.Merged++
	}
}

// landLane removes the calls of a lane from those in flight.
func (f *folder) landLane(key string) {
	f.InFlight = slices.DeleteFunc(slices.Clone(f.InFlight), func(l InFlightCall) bool { return l.Lane == key })
}

// storeLanes drops the finished lanes that are in the stored list now.
func (f *folder) storeLanes(e *Event) {
	p := decoded[LanesStored](e)
	if f.Lanes == nil {
		return
	}
	lanes := *f.Lanes
	lanes.Rows = p.Digest
	lanes.Finished = slices.DeleteFunc(slices.Clone(lanes.Finished),
		func(r FinishedLane) bool { return slices.Contains(p.Lanes, r.Index) })
	f.Lanes = &lanes
	f.head(e)
}

// loadLanes takes finished lanes back from the stored list.
func (f *folder) loadLanes(e *Event) {
	p := decoded[LanesLoaded](e)
	if f.Lanes == nil {
		return
	}
	lanes := *f.Lanes
	for _, row := range p.Rows {
		if row.Index < lanes.Merged || lanes.holds(row.Index) {
			continue
		}
		at, _ := slices.BinarySearchFunc(lanes.Finished, row.Index, func(r FinishedLane, i int) int { return r.Index - i })
		lanes.Finished = slices.Insert(slices.Clone(lanes.Finished), at, row)
	}
	f.Lanes = &lanes
	f.advanceMerge()
	f.head(e)
}
