package traces

import (
	"strings"

	"github.com/passbook-run/passbook/run"
)

// enter is in the stage of an event and in a round; set is the name of the round in a stage that works through sets.
func (f *Fold) enter(e run.Event, round int, set string) {
	name := ""
	if e.Phase != nil {
		name = *e.Phase
	}
	f.within(e)
	if f.stage != nil && f.stage.name != name {
		f.endRound()
		f.close(f.stage, f.stage.busy)
		f.stage = nil
	}
	if f.stage == nil && name != "" {
		f.stage = f.start("stage "+name, seqKey("stage", e.Seq), f.epoch)
		f.stage.name, f.stage.busy = name, f.now
		f.stage.put(text("passbook.stage", name))
	}
	if r := f.round; r != nil && (r.round != round || set != "" && r.set != "" && r.set != set) {
		f.endRound()
	}
	if f.round == nil && f.stage != nil {
		f.round = f.start("round", seqKey("round", e.Seq), f.stage)
		f.round.round, f.round.busy = round, f.now
		f.round.put(text("passbook.stage", name), number("passbook.round", int64(round)))
	}
	if f.round != nil && f.round.set == "" && set != "" {
		f.round.set = set
		f.round.put(text("passbook.set", set))
	}
}

// endRound ends the round with the last span inside it.
func (f *Fold) endRound() {
	if f.round != nil {
		f.close(f.round, f.round.busy)
		f.round = nil
	}
}

func (f *Fold) endPhase(p run.PhaseEnd) {
	outcome := strings.ToLower(strings.TrimSpace(p.Outcome))
	if f.round != nil {
		f.round.put(text("passbook.outcome", p.Outcome))
		if outcome == "failed" || outcome == "rejected" || outcome == "error" {
			f.round.fails(outcome, "")
		}
	}
	f.end(&f.round)
	if !p.Repeats { // else it ends when another stage begins
		f.end(&f.stage)
	}
}

func (f *Fold) startLane(e run.Event, p run.LaneStarted) {
	if f.lanes[e.Lane] != nil {
		return
	}
	o := f.start("lane", seqKey("lane", e.Seq), f.within(e))
	o.put(text("passbook.lane", e.Lane), text("passbook.item", p.Name), number("passbook.lane.index", int64(p.Index)))
	f.lanes[e.Lane] = o
}

func (f *Fold) endLane(e run.Event, p run.LaneEnded) {
	o := f.lanes[e.Lane]
	if o == nil {
		return
	}
	o.put(text("passbook.outcome", p.Outcome))
	if p.Outcome == run.LaneOutcomeFailed {
		o.fails(p.Outcome, p.Reason)
	}
	f.close(o, f.now)
	delete(f.lanes, e.Lane)
}

func (f *Fold) ask(e run.Event, q run.QuestionRequested) {
	o := f.start("question", seqKey("question", e.Seq), f.within(e))
	o.put(text("passbook.question.kind", string(q.Kind)), text("passbook.question.trigger", q.Trigger),
		text("passbook.question.id", q.ID))
	if old := f.questions[q.ID]; old != nil {
		f.close(old, f.now)
	}
	f.questions[q.ID] = o
}

func (f *Fold) decide(e run.Event, d run.QuestionDecided) {
	id := d.ID
	if id == "" && len(f.questions) == 1 { // it is about the open question
		for id = range f.questions {
		}
	}
	o := f.questions[id]
	if o == nil {
		f.note(e)
		return
	}
	o.put(text("passbook.question.action", d.Action))
	f.close(o, f.now)
	delete(f.questions, id)
}
