package run

import (
	"slices"
	"strconv"
	"strings"
)

// phaseKey is a phase's identity: its key; title and the event's phase only where a foreign writer left the key out.
func phaseKey(key, title string, phase *string) string {
	if key == "" {
		key = title
	}
	if key == "" && phase != nil {
		key = *phase
	}
	return key
}

// with returns a copy of list that holds name, once.
func with(list []string, name string) []string {
	if name == "" || slices.Contains(list, name) {
		return list
	}
	return append(slices.Clone(list), name)
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}

func (s State) startPhase(e Event) State {
	var p PhaseStart
	e.Decode(&p)
	key := phaseKey(p.Key, p.Title, e.Phase)
	s.Phase, s.Round, s.Seen = key, p.Round, with(s.Seen, key)
	s.Values, s.Pictures, s.PhaseOpen = nil, nil, true
	return s
}

// endPhase counts a phase as completed only for the outcomes that say so; unknown words are not completed until they are added.
func (s State) endPhase(e Event) State {
	var p PhaseEnd
	e.Decode(&p)
	key := phaseKey(p.Key, p.Title, e.Phase)
	outcome := strings.ToLower(strings.TrimSpace(p.Outcome))
	switch {
	case outcome == "ok" || strings.HasPrefix(outcome, "skipped"):
		s.Completed, s.FailedPhase = with(s.Completed, key), without(s.FailedPhase, key)
	case outcome == "failed" || outcome == "rejected" || outcome == "error":
		s.Completed, s.FailedPhase = without(s.Completed, key), with(s.FailedPhase, key)
	}
	s.PhaseOpen = false
	if p.Repeats {
		s.Rounds = p.Round
	}
	return s.move(p.Next)
}

// move goes to the place an event names. There is no other way to move.
func (s State) move(next *Place) State {
	if next != nil {
		s.Next, s.Settled, s.Tries = *next, nil, nil
	}
	return s
}

func (s State) startPass(e Event) State {
	var p PassStart
	e.Decode(&p)
	s.Set = p.Set
	s.InFlight = append(s.landed(p.Step, p.Member), Flight{
		Step: p.Step, Member: p.Member, Role: p.Role, Call: p.Call, Attempt: p.Attempt, StartedAt: e.TS,
	})
	return s
}

// landed gives the flights without one.
func (s State) landed(step, member string) []Flight {
	return slices.DeleteFunc(slices.Clone(s.InFlight), func(f Flight) bool { return f.Step == step && f.Member == member })
}

func (s State) attemptPass(e Event) State {
	var p PassAttempt
	e.Decode(&p)
	s.InFlight = s.landed(p.Step, p.Member)
	if p.Spend != nil {
		s = s.spend(p.Pass, phaseName(e), *p.Spend)
	}
	if p.RetryInMS > 0 {
		s.Passes.Retries++
	}
	if p.Judged {
		s.Tries = countTry(s.Tries, p.Member)
	}
	return s
}

func countTry(list []Tries, member string) []Tries {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Member == member {
			out[i].Judged++
			return out
		}
	}
	return append(out, Tries{Member: member, Judged: 1})
}

func phaseName(e Event) string {
	if e.Phase == nil {
		return ""
	}
	return *e.Phase
}

// spend counts one call. Passes outside the numbered ones are "pa" in the breakdown by role (requirement 002 §1.6).
func (s State) spend(p Pass, phase string, c Spend) State {
	role := p.Role
	if p.Number == 0 {
		role = "pa"
	}
	s.Spent.Add(c.Tokens, c.USD, c.Estimated)
	s.ByRole = add(s.ByRole, role, c.Tokens, c.USD, c.Estimated)
	s.ByStage = add(s.ByStage, phase, c.Tokens, c.USD, c.Estimated)
	return s
}

func (s State) endPass(e Event) State {
	var p PassEnd
	e.Decode(&p)
	s.InFlight = s.landed(p.Step, p.Member)
	s = s.spend(p.Pass, phaseName(e), p.Spend).countPass(p).keepReply(p, phaseName(e))
	if p.Outcome == "ok" {
		s.Failure = nil
	}
	if p.Verdict != "" {
		s.Values = setValue(s.Values, "verdict", p.Verdict)
	}
	if p.LastInRound {
		s.Set = ""
	}
	s.Settled = with(s.Settled, p.Member)
	return s.move(p.Next).head(e)
}

func (s State) countPass(p PassEnd) State {
	durations := append(slices.Clone(s.DurationsMS), p.DurationMS)
	s.DurationsMS = durations[max(0, len(durations)-keptDurations):]
	s.Passes.Warnings += len(p.Validation.Warnings)
	if p.Outcome == "ok" {
		s.Passes.InRow = 0
	} else {
		s.Passes.InRow++
	}
	if p.Artifact != nil && !p.Modified {
		s.Passes.Unmodified++
	}
	if p.Number == 0 {
		return s
	}
	s.Passes.LastSettled = p.Number
	if !p.Validation.Passed {
		s.Passes.Invalid++
	}
	return s
}

// keepReply remembers the last reply of each step of this round and of each stage: what later steps may be given to see.
func (s State) keepReply(p PassEnd, phase string) State {
	if p.Reply == nil {
		return s
	}
	kept := slices.DeleteFunc(slices.Clone(s.Replies), func(r Reply) bool {
		sameStep := r.Step == p.Step && r.Member == p.Member
		olderPass := p.Number > 0 && r.Phase == phase && p.InRound == 1
		return sameStep || olderPass
	})
	const most = 32
	kept = append(kept, Reply{Step: p.Step, Member: p.Member, Role: p.Role, Phase: phase, Reply: *p.Reply})
	s.Replies = kept[max(0, len(kept)-most):]
	return s
}

func (s State) appendNote(e Event) State {
	var p NoteAppended
	e.Decode(&p)
	s.Notes = slices.Clone(s.Notes)
	for i := range s.Notes {
		if s.Notes[i].Name == p.Note {
			s.Notes[i].Entries++
			s.Notes[i].Whole = p.Whole
		}
	}
	return s
}

func (s State) takePictures(e Event) State {
	var p Screenshots
	e.Decode(&p)
	s.Pictures = nil
	if p.Count > 0 {
		s.Pictures = &p.Manifest
	}
	return s.move(p.Next)
}

func (s State) recordScore(e Event) State {
	var p ScoreRecorded
	e.Decode(&p)
	s.Score = p.Score
	s.Values = setValue(s.Values, "score", scoreText(p.Score))
	return s
}

func scoreText(score *float64) string {
	if score == nil {
		return "null"
	}
	return strconv.FormatFloat(*score, 'f', -1, 64)
}

func setValue(list []Value, name, text string) []Value {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Name == name {
			out[i].Text = text
			return out
		}
	}
	return append(out, Value{Name: name, Text: text})
}

func (s State) checkpoint(e Event) State {
	var p CheckpointCreated
	e.Decode(&p)
	ref := CheckpointRef{ID: p.ID, Seq: e.Seq, TS: e.TS, AtPass: p.AtPass, AtRound: p.AtRound, USD: p.USD, Score: p.Score}
	if s.Artifact != nil {
		ref.Artifact = s.Artifact.Digest
	}
	s.Checkpoint = &ref
	all := append(slices.Clone(s.Checkpoints), ref)
	s.Checkpoints = all[max(0, len(all)-keptCheckpoints):]
	return s
}

// head makes the state after this event the one that a resume starts from. It has no name of its own but its sequence number.
func (s State) head(e Event) State {
	ref := CheckpointRef{ID: "cp-" + strconv.FormatInt(e.Seq, 10), Seq: e.Seq, TS: e.TS, AtPass: s.Passes.LastSettled, AtRound: s.Rounds, USD: s.Total(), Score: s.Score}
	if s.Artifact != nil {
		ref.Artifact = s.Artifact.Digest
	}
	s.Checkpoint = &ref
	return s
}
