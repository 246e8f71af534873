package run

import (
	"slices"
	"sync"
)

// Kind names what an event records. Kinds outlive releases: one is never renamed or given another meaning. The
// constants are beside their rows of the table, in kinds_run.go and the files next to it. Unknown kinds change nothing
// but the sequence number.
type Kind string

// kindRow is all that the program knows of one kind of event. TestEveryKindHasARow names what is missing.
type kindRow struct {
	kind Kind
	// effect is what the event does to the status, for docs/run-state.md; empty: nothing.
	effect string
	// fold folds the event into the small state.
	fold foldEvent
	// record folds the event into the history; nil: it adds nothing.
	record func(*Recorder, *Event)
	// occasion names the receivers that are notified of the event; nil: none.
	occasion func(State) string
	traits
	texts
}

// traits are the properties of a kind that the workflow and the writers of derived files read.
type traits struct {
	partOfPass bool // what the pass that ended before it left besides its reply
	started    bool // it comes only after a start of the run
}

// texts are what people read about an event. Each is set: noLog, noHeadline and noStory where there is nothing to read.
type texts struct {
	payload  func() any // a pointer to an empty one
	log      func(*Log, *Entry)
	headline func(*Entry) string
	story    func(*Entry) Story
}

type foldEvent func(*folder, *Event)

// kinds is the table, made on first use. It never changes.
var kinds = sync.OnceValue(func() map[Kind]*kindRow { return index(allKinds()) })

func allKinds() []kindRow {
	return slices.Concat(statusKinds(), askKinds(), workKinds(), childKinds(), projectKinds(), controlKinds(), forgeKinds())
}

// Kinds lists all kinds of events, in the order of the table.
func Kinds() []Kind {
	var list []Kind
	for _, r := range allKinds() {
		list = append(list, r.kind)
	}
	return list
}

func index(rows []kindRow) map[Kind]*kindRow {
	table := map[Kind]*kindRow{}
	for _, r := range rows {
		table[r.kind] = &r
	}
	return table
}

// about returns the texts of a kind, each written from its payload.
func about[P any](log func(*Log, *Entry, P), headline func(*Entry, P) string, story func(*Entry, P) Story) texts {
	t := texts{payload: func() any { return new(P) }}
	if log != nil {
		t.log = func(l *Log, e *Entry) { log(l, e, decoded[P](&e.Event)) }
	}
	if headline != nil {
		t.headline = func(e *Entry) string { return headline(e, decoded[P](&e.Event)) }
	}
	if story != nil {
		t.story = func(e *Entry) Story { return story(e, decoded[P](&e.Event)) }
	}
	return t
}

// decodes returns a pointer to what the fold decodes payloads of the kind into.
func (r *kindRow) decodes() any {
	switch p := r.payload().(type) {
	case *QuestionRequested:
		return new(requestedMembers)
	case *QuestionDecided:
		return new(decidedMembers)
	default:
		return p
	}
}

// unchanged is the fold of events that change nothing in the small state.
func unchanged(*folder, *Event) {}

// PartOfPass reports whether an event belongs to the pass that ended before it: what it left besides its reply. A
// checkpoint is made after all of them.
func (k Kind) PartOfPass() bool { return k.has().partOfPass }

func (k Kind) has() traits {
	if r := kinds()[k]; r != nil {
		return r.traits
	}
	return traits{}
}

// Occasion is the word in a definition for the receivers that are notified of an event; empty: none. after is the state
// with the event in it.
func Occasion(k Kind, after State) string {
	if r := kinds()[k]; r != nil && r.occasion != nil {
		return r.occasion(after)
	}
	return ""
}
