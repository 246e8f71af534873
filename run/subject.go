package run

import (
	"fmt"
	"slices"
	"strings"
)

// Subject is what a question is about. Texts are in the store; here are their digests.
type Subject struct {
	Work     *Output `json:"work,omitempty"`   // last reply of a role that works
	Judged   *Judged `json:"judged,omitempty"` // verdict on the work as it is; nil: none
	Change   *Change `json:"change,omitempty"` // of the workspace since the start; nil: the run has none
	Checks   []Value `json:"checks,omitempty"` // values of the round, such as tests ok
	Pictures string  `json:"pictures,omitempty"`
	// about the changes; nil: nothing
	Found    *Found    `json:"found,omitempty"`
	Tampered *Tampered `json:"tampered,omitempty"`
	// costs so far
	USD     float64 `json:"usd,omitempty"`
	Unknown int     `json:"unknown_calls,omitempty"`
	// IDs of earlier decisions, at most eight, the newest last
	Earlier []string `json:"earlier_decisions,omitempty"`
}

// Output is a reply of a role.
type Output struct {
	Role   string `json:"role"`
	Digest string `json:"digest"`
}

// Judged is the last verdict of a run, and the reply that contains it.
type Judged struct {
	Word     string    `json:"verdict,omitempty"`
	Approved *bool     `json:"approved,omitempty"`
	Score    *float64  `json:"score,omitempty"`
	Role     string    `json:"role"`
	Phase    string    `json:"phase"`
	Round    int       `json:"round"`
	Reply    string    `json:"reply,omitempty"`    // digest
	Findings *Findings `json:"findings,omitempty"` // of a structured verdict
	Outdated bool      `json:"outdated,omitempty"` // the work has changed since
}

// Findings count what a structured verdict lists.
type Findings struct {
	Digest    string `json:"digest"` // of the verdict as JSON
	ShipReady *bool  `json:"ship_ready,omitempty"`
	Findings  int    `json:"findings"`
	Blockers  int    `json:"blockers"`
	Gaps      int    `json:"gaps"`
}

// Blob is the digest of the verdict; empty: there is none.
func (f *Findings) Blob() string {
	if f == nil {
		return ""
	}
	return f.Digest
}

// Change lists files that a run changed.
type Change struct {
	Tree  string   `json:"tree"`  // digest of the workspace
	Files []string `json:"files"` // the first of them
	More  bool     `json:"more,omitempty"`
}

// PastDecision is a decision of the run.
type PastDecision struct {
	Kind     QuestionKind `json:"kind"`
	ID       string       `json:"id"`
	Trigger  string       `json:"trigger,omitempty"`
	Phase    string       `json:"phase,omitempty"`
	Round    int          `json:"round,omitempty"`
	Action   string       `json:"action"`
	Feedback string       `json:"feedback,omitempty"` // shortened, like the note
	Note     string       `json:"note,omitempty"`
	By       string       `json:"by,omitempty"`
	At       string       `json:"at"`
}

// About is the question that feedback answers.
type About struct {
	Question string  `json:"question"`
	Verdict  string  `json:"verdict,omitempty"`
	Work     *Output `json:"work,omitempty"`
	Review   *Output `json:"review,omitempty"` // the reply with the verdict
}

// commandRole is the role of commands in replies: they do no work and judge nothing.
const commandRole = "command"

// Bounds of what a state keeps.
const (
	keptDecisions = 8
	keptFiles     = 24
	keptRunes     = 600
)

// Subject is what a question asked now is about.
func (s State) Subject() Subject {
	about := Subject{Checks: slices.Clone(s.Values), USD: s.Total(), Unknown: s.UnknownCalls(), Found: s.Found,
		Tampered: s.Tampered}
	for _, r := range slices.Backward(s.Replies) {
		if !r.Judges && r.Role != commandRole {
			about.Work = &Output{Role: r.Role, Digest: r.Reply.Digest}
			break
		}
	}
	if s.Tree != nil {
		about.Change = &Change{Tree: s.Tree.Digest, Files: filledList(slices.Clone(s.Files)), More: s.MoreFiles}
	}
	if s.Pictures != nil {
		about.Pictures = s.Pictures.Digest
	}
	if j := s.CurrentVerdict(); j != nil {
		about.Judged = j
	}
	for _, d := range s.Decisions {
		about.Earlier = append(about.Earlier, d.ID)
	}
	return about
}

// CurrentVerdict is the verdict on the work as it is; nil: there is none. A verdict of another stage is about other
// work if a role has replied in this stage since.
func (s State) CurrentVerdict() *Judged {
	j := s.Judged
	if j == nil || j.Outdated {
		return nil
	}
	for _, r := range slices.Backward(s.Replies) {
		if r.Role != commandRole {
			if j.Phase != s.Phase && r.Phase == s.Phase && !r.Judges {
				return nil
			}
			break
		}
	}
	return j
}

// about is what feedback on a question is about.
func (q Question) about() *About {
	a := About{Question: q.Words(), Verdict: q.Verdict, Work: q.Work}
	if j := q.Judged; j != nil && j.Reply != "" {
		a.Review = &Output{Role: j.Role, Digest: j.Reply}
		if a.Verdict = j.Word; j.Score != nil && j.Word == "" {
			a.Verdict = fmt.Sprintf("score %s", scoreText(j.Score))
		}
	}
	return &a
}

// outdate marks the last verdict as one on earlier work. A verdict that approves the work counts until the work changes, by
// a call or by an operator, any other until the next verdict.
func (f *folder) outdate() {
	if f.Judgement().Approves() {
		f.Verdict, f.Approved = "", nil
	}
	f.Conditions = nil
	if f.Judged == nil || f.Judged.Outdated {
		return
	}
	j := *f.Judged
	j.Outdated = true
	f.Judged = &j
}

// doubt outdates the last verdict because an operator has changed the work. Members of a group and lanes that have judged it
// do not judge again, so what they approved needs another approval.
func (f *folder) doubt() {
	judged := len(f.Settled) > 0 && f.Judgement().Approves()
	if f.outdate(); judged {
		no := false
		f.Approved = &no
	}
	if f.Lanes != nil {
		lanes := *f.Lanes
		lanes.Doubted = true
		f.Lanes = &lanes
	}
}

// keepVerdict keeps the reply that contains a verdict or a score.
func (f *folder) keepVerdict(p *PassEnd, phase string) {
	if p.Verdict == "" && p.Approved == nil && p.Score == nil {
		return
	}
	j := Judged{Word: p.Verdict, Approved: p.Approved, Score: p.Score, Role: p.Role, Phase: phase, Round: p.Round,
		Findings: p.Findings}
	if p.Reply != nil {
		j.Reply = p.Reply.Digest
	}
	f.Judged = &j
}

// touch keeps the names of changed files.
func (f *folder) touch(files []FileChange, all int) {
	f.Files = list(f, f.Files)
	f.MoreFiles = f.MoreFiles || all > len(files)
	for _, c := range files {
		path := clipped(c.Path, 200)
		switch {
		case slices.Contains(f.Files, path):
		case len(f.Files) < keptFiles:
			f.Files = append(f.Files, path)
		default:
			f.MoreFiles = true
		}
	}
}

// past keeps a decision.
func (f *folder) past(d QuestionDecided, asked Question) {
	f.Decisions = newest(append(list(f, f.Decisions), PastDecision{
		Kind: d.Kind, ID: f.Decided.ID, Trigger: asked.Trigger, Phase: asked.Phase, Round: asked.Round,
		Action: word(d.Action), Feedback: clipped(d.Feedback, keptRunes), Note: clipped(d.Note, keptRunes/3),
		By: d.DecidedBy, At: d.DecidedAt,
	}), keptDecisions)
}

// clipped cuts a text.
func clipped(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + " …"
	}
	return text
}

// Text describes a verdict in a few words: rejected by reviewer, 2 blockers, 3 findings.
func (j Judged) Text() string {
	text := j.Word
	if text == "" && j.Score != nil {
		text = "score " + scoreText(j.Score)
	}
	if text == "" {
		text = "none"
	}
	text += " by " + j.Role
	if found := j.Findings.Text(); found != "" {
		text += ", " + found
	}
	return text
}

// Text counts what the verdict lists: 2 blockers, 3 findings; empty: nothing.
func (f *Findings) Text() string {
	if f == nil {
		return ""
	}
	var all []string
	for _, n := range []struct {
		count int
		noun  string
	}{{f.Blockers, "blocker"}, {f.Findings, "finding"}, {f.Gaps, "gap"}} {
		if n.count > 0 {
			all = append(all, Plural(n.count, n.noun))
		}
	}
	return strings.Join(all, ", ")
}

// Text is a decision in one line.
func (d PastDecision) Text() string {
	text := d.Action + " of " + d.Kind.Spec().Name
	if d.Phase != "" {
		text += " " + d.Phase
	}
	if d.Round > 1 {
		text += fmt.Sprintf(" %d", d.Round)
	}
	if d.By != "" {
		text += " by " + d.By
	}
	for _, said := range []string{d.Feedback, d.Note} {
		if said = OneLine(said); said != "" {
			text += ": " + said
		}
	}
	return text
}

// Text names the changed files in one line.
func (c Change) Text() string {
	more := ""
	if c.More {
		more = ", …"
	}
	if len(c.Files) == 0 {
		return "none"
	}
	return strings.Join(c.Files, ", ") + more
}

// Fact is one line about a question.
type Fact struct {
	Name string
	Text string
}

// Facts describe what an open question is about: verdict, checks, change, cost and earlier decisions.
func (s State) Facts(q Question) []Fact {
	var facts []Fact
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, Fact{name, OneLine(text)})
		}
	}
	inLane := q.Of != "" && q.Of != ofAcross // verdict and changes of the run are those of other lanes
	others := inLane || len(s.Projects) > 0 && q.Project == nil
	switch {
	case q.Judged != nil && !inLane:
		add("Verdict", q.Judged.Text())
	case q.Verdict != "" && !inLane:
		add("Verdict", q.Verdict)
	case !others:
		add("Verdict", "none on the work as it is")
	}
	var checks []string
	for _, v := range q.Checks {
		if v.Name != "verdict" && v.Name != "score" {
			checks = append(checks, v.Name+" "+v.Text)
		}
	}
	add("Checks", strings.Join(checks, ", "))
	for _, f := range guardFacts(q.Tampered, q.Found) {
		add(f.Name, f.Text)
	}
	if q.Kind == QuestionDelivery && !others || len(s.OnlyInWorkspace()) > 0 && !others {
		add("Fresh folder", s.FreshText())
	}
	if q.Change != nil && !others {
		add("Changed", q.Change.Text())
	}
	if cost := CostText(q.USD, q.Unknown); q.USD > 0 || q.Unknown > 0 {
		add("Cost", cost)
	}
	for _, d := range s.Decisions {
		add("Earlier", d.Text())
	}
	return facts
}
