package run

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGuardTexts(t *testing.T) {
	var none *Tampered
	require.Equal(t, "", none.Text())
	require.Zero(t, none.Files())
	tampered := &Tampered{Step: "s", Call: "c", Role: "w", Count: 2, First: []FileChange{
		{Path: strings.Repeat("a", 201), Kind: "changed"}, {Path: "new", Old: strings.Repeat("b", 200), Kind: "renamed"}}}
	text := strings.Repeat("a", 200) + " … (changed), " + strings.Repeat("b", 200) + " (renamed)"
	require.Equal(t, text, tampered.Text())
	require.Equal(t, 2, tampered.Files())
	require.Equal(t, "tampered: w changed 2 protected files, restored: "+text, tampered.Warning())
	tampered.Count = 3
	require.Equal(t, text+", and 1 more", tampered.Text())

	var nothing *Found
	require.Equal(t, "", nothing.Blob())
	require.Empty(t, nothing.Warnings())
	require.Empty(t, State{}.GuardFacts())
	found := &Found{Findings: Findings{Digest: "d"}, Count: 2, Outside: []string{"a", "b\n"}, Scope: "planner"}
	require.Equal(t, "d", found.Blob())
	require.Equal(t, []string{"outside the scope that planner declared: 2 files: a, b"}, found.Warnings())
	found.Count = 3
	found.Hidden, found.HiddenCount, found.Refused = []string{"c"}, 1, []string{"git~1", "D"}
	require.Equal(t, []string{`outside the scope that planner declared: 3 files: a, b\n and 1 more`,
		"hidden by changed ignore rules, and still part of the work: 1 file: c"}, found.Warnings())
	require.Equal(t, []Fact{{"Out of scope", `a, b\n and 1 more`}, {"Hidden files", "c"}, {"Refused names", "git~1, D"}},
		State{Found: found}.GuardFacts())
	var verdict *Findings
	require.Equal(t, "", verdict.Blob()+verdict.Text())
	require.Equal(t, "d", (&Findings{Digest: "d"}).Blob())
}

// A change that settles replaces what was found about the one before; a plan that declares a scope clears it.
func TestFoundAboutChanges(t *testing.T) {
	old, fresh := &Found{Count: 1}, &Found{Count: 2, Findings: Findings{Findings: 3}}
	for name, row := range map[string]struct {
		pass     PassEnd
		found    *Found
		tampered bool
	}{
		"a change":       {PassEnd{Pass: Pass{Gives: "changes"}, Outcome: CategoryOK, Found: fresh}, fresh, false},
		"a clean change": {PassEnd{Pass: Pass{Gives: "changes"}, Outcome: CategoryOK}, nil, false},
		"a change that failed": {PassEnd{Pass: Pass{Gives: "changes"}, Outcome: CategoryAgentExit, Found: fresh}, old,
			true},
		"an empty output":        {PassEnd{Pass: Pass{Gives: "changes"}, Outcome: CategoryOutputEmpty}, old, true},
		"a report":               {PassEnd{Pass: Pass{Gives: "report"}, Outcome: CategoryOK}, old, true},
		"a plan without a scope": {PassEnd{Pass: Pass{Gives: "plan"}, Outcome: CategoryOK}, old, true},
	} {
		s := newStream(t, State{})
		s.Found, s.Tampered = old, &Tampered{Count: 1}
		s.add(KindPassEnd, "p", row.pass)
		require.Equal(t, row.found, s.Found, name)
		require.Equal(t, row.tampered, s.Tampered != nil, name)
		require.Nil(t, s.Scope)
	}
	s := newStream(t, State{})
	s.Found, s.Tree = old, named("t")
	scope := Scope{Role: "planner", Digest: "d", Count: 2, Paths: []string{"a"}}
	s.add(KindPassEnd, "p", PassEnd{Outcome: CategoryOK, Scope: &scope})
	scope.Tree = "t"
	require.Equal(t, &scope, s.Scope)
	require.Nil(t, s.Found)
	s.Tree = nil
	s.add(KindPassEnd, "p", PassEnd{Outcome: CategoryOK, Scope: &Scope{Role: "r"}})
	require.Equal(t, &Scope{Role: "r"}, s.Scope)
}

func TestDamageTexts(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for want, d := range map[string]JournalDamage{
		"events.jsonl, line 1, is missing": {File: "events.jsonl", Line: 1, Found: Missing, Expected: hash},
		"events.jsonl is not what was written: expected sha256 abababababab, found x; repaired": {File: "events.jsonl",
			Expected: hash, Found: "x", Repaired: true},
		"segment 1 is missing; repaired; the file as it was found is torn/x": {File: "segment 1", Found: Missing,
			Kept:     "torn/x",
			Repaired: true},
		"f is not what was written: expected " + hash[:62] + " x, found " + hash[:63]: {File: "f", Expected: hash[:62] + " x",
			Found: hash[:63]},
	} {
		require.Equal(t, want, d.String())
	}
	a := JournalDamage{File: "events.jsonl", Line: 3, Expected: "e", Found: "f", Kept: "k"}
	for name, row := range map[string]struct {
		change func(*JournalDamage)
		same   bool
	}{
		"repaired":       {func(d *JournalDamage) { d.Repaired, d.Kept, d.Expected = true, "", "" }, true},
		"another digest": {func(d *JournalDamage) { d.Found = "k" }, false},
		"another line":   {func(d *JournalDamage) { d.Line = 4 }, false},
		"another file":   {func(d *JournalDamage) { d.File = "x" }, false},
	} {
		b := a
		row.change(&b)
		require.Equal(t, row.same, a.Same(b), name)
	}
	whole := JournalDamage{File: "events.jsonl", Found: "f"}
	require.True(t, whole.Same(JournalDamage{File: "events.jsonl", Found: "g"}), "chains change with every line")
	require.False(t, whole.Same(JournalDamage{File: "events.jsonl", Found: "f", Line: 3}))
	segment := JournalDamage{File: SegmentFile + "1", Found: "f"}
	require.False(t, segment.Same(JournalDamage{File: SegmentFile + "1", Found: "g"}))
	require.True(t, State{Damage: []JournalDamage{segment, a}}.Damages(a))
	require.False(t, State{Damage: []JournalDamage{segment}}.Damages(a))

	s := newStream(t, State{})
	for line := range int64(keptDamage + 1) {
		s.add(KindJournalDamaged, "", JournalDamage{File: "events.jsonl", Line: line + 1, Found: Missing})
	}
	require.Len(t, s.Damage, keptDamage)
	require.EqualValues(t, 2, s.Damage[0].Line)
	require.Equal(t, &Problem{TS: s.TS, Context: "run", Category: CategoryStateCorruption,
		Message: "events.jsonl, line 5, is missing"}, s.Problem)
}

// Plans: each part of a reference and of the terms has its own place.
func TestStartsUnderAnotherPlan(t *testing.T) {
	var s RunStart
	var terms PlanTerms
	var ref PlanRef
	n := 1
	number(reflect.ValueOf(&s).Elem(), &n, 4)
	number(reflect.ValueOf(&terms).Elem(), &n, 4)
	number(reflect.ValueOf(&ref).Elem(), &n, 4)
	terms.Judged = !s.Judged
	require.Equal(t, PlanRef{Definition: s.Definition, Plan: s.Plan, Inputs: s.Inputs, Policy: s.Policy,
		ConfigHash: s.ConfigHash}, s.PlanRef())
	got := s.Under(ref, terms)
	require.Equal(t, ref, got.PlanRef())
	require.Equal(t, terms, PlanTerms{TotalPasses: got.TotalPasses, MaxRounds: got.MaxRounds, Threshold: got.Threshold,
		Judged: got.Judged, Waits: got.Waits, Receivers: got.Receivers, TimeScale: terms.TimeScale, Stages: got.Stages})
	back := got.Under(s.PlanRef(), PlanTerms{TotalPasses: s.TotalPasses, MaxRounds: s.MaxRounds, Threshold: s.Threshold,
		Judged: s.Judged, Waits: s.Waits, Receivers: s.Receivers, Stages: s.Stages})
	require.Equal(t, s, back, "nothing else changes")
	terms.Stages = nil
	require.Equal(t, s.Stages, s.Under(ref, terms).Stages, "an earlier release wrote none")
	require.Equal(t, s.PlanRef(), State{}.PlanInForce(s))
	require.Equal(t, ref, State{Plan: &CurrentPlan{PlanRef: ref}}.PlanInForce(s))
}

func TestFoldOfAmendments(t *testing.T) {
	s := newStream(t, State{})
	s.Stages, s.Means, s.Next = []StageRef{{Name: "old"}}, []Mean{{Role: "r"}}, Place{Stage: 2}
	s.Budget = Budget{CapUSD: 1}
	amend := func(p RunAmended) { s.add(KindRunAmended, "", p) }
	amend(RunAmended{New: PlanRef{Plan: "p2"}, Terms: PlanTerms{TotalPasses: 7, MaxRounds: 3}, By: "ann",
		Differences: []Amendable{{Name: "budget.usd", File: "agent.md"}}, Budget: &Budget{CapUSD: 5}})
	require.Equal(t, &CurrentPlan{PlanRef: PlanRef{Plan: "p2"}, Seq: s.Seq, From: &Place{Stage: 2}}, s.Plan)
	require.Equal(t, 7, s.Passes.Total)
	require.Equal(t, 5.0, s.Budget.CapUSD)
	require.Equal(t, "old", s.Stages[0].Name)
	require.NotEmpty(t, s.Means)
	amend(RunAmended{New: PlanRef{Plan: "p3"}, Source: "run-0", Terms: PlanTerms{Stages: []StageRef{{Name: "new"}}}})
	amend(RunAmended{New: PlanRef{Plan: "p4"}, Source: "run-0"})
	amend(RunAmended{New: PlanRef{Plan: "p5"}, Running: true, Differences: []Amendable{{Name: "x"},
		{Name: "agents.w.run"}}})
	require.Equal(t, &CurrentPlan{PlanRef: PlanRef{Plan: "p5"}, Seq: s.Seq, Replayed: 2}, s.Plan)
	require.Equal(t, "new", s.Stages[0].Name)
	require.Empty(t, s.Means, "other agents have other prices")
	require.Equal(t, 5.0, s.Budget.CapUSD)
	five := RunAmended{Differences: make([]Amendable, 5)}
	for i := range five.Differences {
		five.Differences[i].Name = string(rune('a' + i))
	}
	require.Equal(t, "a, b, c, d, e", five.names())
	five.Differences = append(five.Differences, five.Differences[0])
	require.Equal(t, "a, b, c, d, e, 1 more", five.names())
	require.Equal(t, "a (f)", Amendable{Name: "a", File: "f", Old: "1", New: "2"}.String())
	require.Equal(t, "a is 2 (was unset)", Amendable{Name: "a", New: "2"}.String())
	require.Equal(t, "a is unset (was 1)", Amendable{Name: "a", Old: "1"}.String())
}

func TestRolesAndUsesOfInstructions(t *testing.T) {
	start := RunStart{Stages: []StageRef{{Name: "a", Roles: []string{"x", "y"}, Sets: []string{"S"}},
		{Name: "b", Roles: []string{"y", "z", "z"}}, {Name: "c"}}}
	for stage, want := range map[int][]string{-1: {"x", "y", "z"}, 0: {"x", "y", "z"}, 1: {"y", "z"}, 2: nil, 3: nil,
		9: nil} {
		require.Equal(t, want, start.RolesFrom(stage), stage)
	}
	i := Instruction{Uses: []InstructionUse{{Role: "r", Step: "s", Round: 2, Member: "m"}}}
	require.True(t, i.UsedAt("s", 2, "m"))
	for _, row := range []struct {
		step   string
		round  int
		member string
	}{{"m", 2, "m"}, {"s", 1, "m"}, {"s", 2, "s"}, {"s", 2, "r"}, {"", 2, "m"}} {
		require.False(t, i.UsedAt(row.step, row.round, row.member), row)
	}
	require.True(t, i.UsedBy("r"))
	require.False(t, i.UsedBy("s"))
	require.Equal(t, []Instruction{{Text: "for all", Uses: i.Uses}, {Role: "q", Text: "r", Uses: i.Uses}},
		State{Instructions: []Instruction{{Role: "r", Text: "q", Uses: i.Uses}, {Text: "for all", Uses: i.Uses},
			{Role: "q", Text: "r", Uses: i.Uses}}}.Pending())
	given := State{Instructions: []Instruction{{ID: 1, Not: []string{"c", "d"}}}}
	s := newStream(t, State{})
	s.Instructions, s.Started = given.Instructions, []string{"c"}
	s.add(KindPassEnd, "p", PassEnd{Pass: Pass{Role: "w", Step: "1", Round: 2, Member: "m"}, Call: "c",
		Outcome:      CategoryOK,
		Instructions: []int64{1}})
	require.Equal(t, []Instruction{{ID: 1, Not: []string{"d"}, Uses: []InstructionUse{{"w", "1", 2, "m"}}}},
		s.Instructions)
	require.Equal(t, []Instruction{{ID: 1, Not: []string{"c", "d"}}}, given.Instructions)
	require.Empty(t, s.Started)
	s.add(KindPassEnd, "p", PassEnd{Pass: Pass{Role: "w"}, Outcome: CategoryOK, Instructions: []int64{1}})
	require.Len(t, s.Instructions[0].Uses, 1, "one of each role")
}

func TestPartsOfPayloads(t *testing.T) {
	require.Equal(t, "r", Blob{Digest: "d", Raw: "r"}.Original())
	require.Equal(t, "d", Blob{Digest: "d"}.Original())
	require.Equal(t, "d", DigestOf(&Blob{Digest: "d", Raw: "r"}))
	require.Equal(t, "", DigestOf(nil))
	for want, s := range map[string]RunStart{
		" ":        {RunID: "x"},
		"p follow": {Parent: &Parent{RunID: "p", Mode: "follow"}},
		"s replay": {Source: &Source{RunID: "s", Mode: "replay", Replay: "policy", Checkpoint: "c"}},
		"s fork":   {Source: &Source{RunID: "s", Mode: "fork"}, Parent: &Parent{RunID: "p", Mode: "follow"}},
	} {
		id, mode := s.Origin()
		require.Equal(t, want, id+" "+mode)
	}
	tree := &State{Tree: named("t")}
	for gives, want := range map[string][2]bool{"changes": {true, true}, "artifact": {true, false},
		"report": {false, false}} {
		p := Pass{Gives: gives, Order: "changes"}
		require.Equal(t, want, [2]bool{p.CountsAsTurn(&State{Pictures: named("p")}), p.CountsAsTurn(tree)}, gives)
		require.Equal(t, gives == "changes", PassEnd{Pass: p}.Turn())
	}
	for gives, want := range map[string]string{"outcome": EffectExternal, "report": EffectRead, "changes": EffectWrite} {
		require.Equal(t, want, Pass{Gives: gives, Order: "report"}.EffectClass())
	}
	asked := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	require.Equal(t, Deadlines{RemindMS: 5}, Waits{RemindMS: 5, OnExpiry: "halt"}.From(asked))
	require.Equal(t, Deadlines{RemindMS: 5, ExpiresAt: "2026-01-02T03:00:00.001Z", OnExpiry: "halt"},
		Waits{RemindMS: 5, ExpiresMS: 1, OnExpiry: "halt"}.From(asked))

	for want, p := range map[string]Pass{
		"pass-3":    {Number: 3, InRound: 1, Dir: "d", Member: "m", Role: "r", Step: "s"},
		"round-2-m": {Dir: "d", Member: "m", Role: "r", Step: "s", Round: 2},
		"round-2-r": {Dir: "d", Role: "r", Step: "s", Round: 2},
		"s-m":       {Member: "m", Role: "r", Step: "s", Set: "x"},
		"s":         {Role: "r", Step: "s", Set: "x"},
	} {
		require.Equal(t, want, p.Context(WordingStages))
	}
	long := strings.Repeat("a", 100) + strings.Repeat("b", 200)
	require.Equal(t, long, short(long))
	require.Equal(t, strings.Repeat("a", 100)+"…"+strings.Repeat("b", 198)+"c", short(long+"c"))

	q := QuestionRequested{Kind: QuestionHandoff, ID: "h", Phase: "p"}
	raw, err := json.Marshal(q)
	require.NoError(t, err)
	var back QuestionRequested
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, q, back)
	require.NoError(t, json.Unmarshal([]byte(`{"id":"g","phase":"p"}`), &back))
	require.Equal(t, QuestionRequested{ID: "g", Phase: "p"}, back)
	_, ok := Event{Kind: KindGateRequested, Payload: []byte(`{}`)}.Decision()
	require.False(t, ok)
	_, ok = Event{Kind: KindGateDecided, Payload: []byte(`{}`)}.Question()
	require.False(t, ok)
	d, ok := Event{Kind: KindGateDecided, Payload: []byte(`{"id":"g","action":"a"}`)}.Decision()
	require.True(t, ok)
	require.Equal(t, QuestionDecided{Kind: QuestionGate, ID: "g", Action: "a"}, d)

	e := Event{Seq: 1, Kind: KindPhaseStart, Payload: []byte(`{"phase_key":"a"}`)}.Decoded()
	require.NotNil(t, e.decoded)
	require.Same(t, e.decoded, e.Decoded().decoded)
	e.Payload[14] = 'b'
	require.Equal(t, "a", PayloadOf[PhaseStart](e).Key, "it was decoded once")
	require.Equal(t, PassStart{}, PayloadOf[PassStart](e))
	require.Nil(t, Event{Kind: "unknown", Payload: []byte("{}")}.Decoded().decoded)
	require.Nil(t, Event{Kind: KindPhaseStart}.Decoded().decoded)
	require.Nil(t, Event{Kind: KindRunReverted, Payload: []byte("[")}.At(3).Phase)
	require.EqualValues(t, 3, e.At(3).Seq)
	kept := PhaseStart{Key: "k"}
	Event{}.Decode(&kept)
	require.Zero(t, kept, "what was there is replaced")
}

func TestNamesOfFiles(t *testing.T) {
	for name, want := range map[string][2]bool{"a": {true, true}, "a/b": {true, false}, "/a": {}, "a\x7f": {},
		"a\u009f": {},
		"a\u00a0": {true, true}, "a\u0080": {}, "a~": {true, true}, "a\x1f": {}, "a ": {true, true}, "..": {}} {
		require.Equal(t, want, [2]bool{LocalName(name), SingleName(name)}, "%q", name)
	}
	require.EqualError(t, &NameError{What: "dir", Name: "/x"}, `dir "/x" is not a name of a file in a run directory`)
}

// pick is a state with these fields only.
func pick(s State, fields ...string) (out State) {
	from, to := reflect.ValueOf(s), reflect.ValueOf(&out).Elem()
	for _, name := range fields {
		to.FieldByName(name).Set(from.FieldByName(name))
	}
	return out
}

// number fills a value so that no two of its fields are equal, as far as their types allow it.
func number(v reflect.Value, n *int, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			number(v.Elem(), n, depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(fmt.Sprint(*n)))
		} else if depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			number(v.Index(0), n, depth+1)
			number(v.Index(1), n, depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				number(v.Field(i), n, depth+1)
			}
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(*n%2 == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	}
	*n++
}
