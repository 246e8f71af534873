package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// comparedPlan has a stage that runs once, with a step of each kind, and a stage that repeats.
func comparedPlan() *Plan {
	return &Plan{
		Pipeline: "p", TimeScale: 1, Agents: []Agent{{Run: []string{"claude"}}, {Name: "b", Run: []string{"codex"}}},
		Artifact: &Artifact{File: "a.html", Seed: "seed.html"}, Workspace: &Workspace{Dir: "src"},
		AlwaysRead: []File{{"Guide", "guide.md"}},
		Sets:       []Set{{ID: "S1", Theme: "One", Files: []File{{"A", "a.md"}}}},
		Roles: []Role{{Name: "writer", Prompt: "w.md", Gives: GivesReport}, {Name: "critic", Prompt: "c.md",
			Gives: GivesReport}},
		Stages: []PlanStage{
			{Name: "once", Kind: StageOnce, Rounds: []PlanRound{{Steps: []PlanStep{
				{Key: "001", Kind: KindRole, Role: "writer"}, {Key: "once/2", Kind: KindRun, Run: "make"},
				{Key: "once/3", Kind: KindAsk, Ask: "Right?", AskType: AskAlways},
				{Key: "once/4", Kind: KindTogether, Members: []string{"writer"}},
			}}}},
			{Name: "loop", Kind: StageRepeat, Repeat: &Repeat{Max: 2, Until: "approved"},
				Rounds: []PlanRound{{Steps: []PlanStep{{Key: "loop/1", Kind: KindRole, Role: "critic"}}}}},
		},
	}
}

// compared lists what Compare finds after a change: name: old => new, and why it is refused.
func compared(at Position, change func(p *Plan)) []string {
	next := comparedPlan()
	change(next)
	found := []string{}
	for _, d := range Compare(Version{Plan: comparedPlan()}, Version{Plan: next}, at) {
		text := fmt.Sprintf("%s: %s => %s", d.Name(), d.Old, d.New)
		if d.Refused != "" {
			text += "; " + d.Refused
		}
		found = append(found, text)
	}
	return found
}

func TestCompareFindsEachValue(t *testing.T) {
	const fixed = "; " + RefusedStructure
	for want, change := range map[string]func(p *Plan){
		"pipeline: p => q" + fixed:        func(p *Plan) { p.Pipeline = "q" },
		"kind:  => research" + fixed:      func(p *Plan) { p.Kind = KindResearch },
		"budget.usd: 0 => 5":              func(p *Plan) { p.Budget.USD = 5 },
		"budget.per_pass.tokens: 0 => 9":  func(p *Plan) { p.Budget.PerPass.Tokens = 9 },
		"limits.at_once: 0 => 2":          func(p *Plan) { p.AtOnce = 2 },
		"limits.time_scale: 1 => 0.5":     func(p *Plan) { p.TimeScale = 0.5 },
		"questions.expires: 0s => 1h0m0s": func(p *Plan) { p.Questions.Expires = time.Hour },
		"notify.0:  => {run: x y, on: end}": func(p *Plan) {
			p.Notify = []Notify{{Run: []string{"x y"}, On: []string{"end"}}}
		},
		"agent.run: claude => claude -p":      func(p *Plan) { p.Agents[0].Run = []string{"claude", "-p"} },
		"agents.b: {name: b, run: codex} => ": func(p *Plan) { p.Agents = p.Agents[:1] },
		"agents.c:  => {name: c, run: gemini}": func(p *Plan) {
			p.Agents = append(p.Agents, Agent{Name: "c", Run: []string{"gemini"}})
		},
		"artifact.seed: seed.html => other.html" + fixed: func(p *Plan) {
			p.Artifact.Seed = "other.html"
		},
		"artifact: {file: a.html, seed: seed.html} => " + fixed: func(p *Plan) { p.Artifact = nil },
		"workspace.dir: src => lib" + fixed:                     func(p *Plan) { p.Workspace.Dir = "lib" },
		"snapshots:  => full" + fixed:                           func(p *Plan) { p.Snapshots = "full" },
		"delivery:  => {to: branch}" + fixed:                    func(p *Plan) { p.Delivery = &Delivery{To: "branch"} },
		"notes.n:  => {name: n, file: n.md}" + fixed: func(p *Plan) {
			p.Notes = []Note{{Name: "n", File: "n.md"}}
		},
		"always_read.Guide.path: guide.md => g.md" + fixed: func(p *Plan) { p.AlwaysRead[0].Path = "g.md" },
		"corpus.S1.theme: One => Two" + fixed:              func(p *Plan) { p.Sets[0].Theme = "Two" },
		"corpus.S1.files.A.path: a.md => b.md" + fixed:     func(p *Plan) { p.Sets[0].Files[0].Path = "b.md" },
		"roles.writer.gives: report => changes" + fixed:    func(p *Plan) { p.Roles[0].Gives = GivesChanges },
		"roles.writer.prompt: w.md => v.md":                func(p *Plan) { p.Roles[0].Prompt = "v.md" },
		"roles.writer.agent:  => b":                        func(p *Plan) { p.Roles[0].Agent = "b" },
		"roles.writer.session:  => continue":               func(p *Plan) { p.Roles[0].Session = SessionContinue },
		"roles.writer.limits.attempts: 0 => 7":             func(p *Plan) { p.Roles[0].Limits.Attempts = 7 },
		"stages: once, loop => once" + fixed:               func(p *Plan) { p.Stages = p.Stages[:1] },
		"stages.once.kind: once => each" + fixed:           func(p *Plan) { p.Stages[0].Kind = StageEach },
		"stages.loop.repeat: {max: 2, until: approved} => " + fixed: func(p *Plan) {
			p.Stages[1].Repeat = nil
		},
		"stages.loop.repeat.max: 2 => 3":         func(p *Plan) { p.Stages[1].Repeat.Max = 3 },
		"stages.once.checkpoint:  => x" + fixed:  func(p *Plan) { p.Stages[0].Checkpoint = "x" },
		"stages.once.dir:  => x" + fixed:         func(p *Plan) { p.Stages[0].Dir = "x" },
		"stages.once.pause_after: false => true": func(p *Plan) { p.Stages[0].PauseAfter = true },
		"stages.once.quality_gate:  => approved": func(p *Plan) { p.Stages[0].Gate = "approved" },
		"stages.loop.steps: loop/1 role => loop/1 run" + fixed: func(p *Plan) {
			p.Stages[1].Rounds[0].Steps[0].Kind = KindRun
		},
	} {
		t.Run(want, func(t *testing.T) { require.Equal(t, []string{want}, compared(Position{Round: 1}, change)) })
	}
	require.Empty(t, compared(Position{Round: 1}, func(*Plan) {}))
	require.Empty(t, compared(Position{Round: 1}, func(p *Plan) {
		p.Workspace.Dirty, p.Roles[0].Places, p.Stages[0].Title = "commit", []string{PartNotes}, "Once"
		p.Roles[0].Limits = Limits{}.Complete()
	}), "what only counts at the start, follows from other values, or is the default")
}

func TestCompareFindsEachValueOfAStep(t *testing.T) {
	const fixed = "; " + RefusedStructure
	start, over := Position{Round: 1}, Position{Stage: 1, Round: 1}
	for key, change := range map[string]func(s *PlanStep){
		"role:  => critic" + fixed:                 func(s *PlanStep) { s.Role = "critic" },
		"together:  => a b" + fixed:                func(s *PlanStep) { s.Members = []string{"a", "b"} },
		"run: make => make all":                    func(s *PlanStep) { s.Run = "make all" },
		"ask:  => Why?":                            func(s *PlanStep) { s.Ask = "Why?" },
		"type:  => human_bypass" + fixed:           func(s *PlanStep) { s.AskType = AskBypass },
		"questions:  => {on_expiry: halt}":         func(s *PlanStep) { s.Questions = &Questions{OnExpiry: "halt"} },
		"if_failing:  => ask" + fixed:              func(s *PlanStep) { s.IfFailing = "ask" },
		"effect:  => external_action" + fixed:      func(s *PlanStep) { s.Effect = "external_action" },
		"screenshots:  => {attempts: 3}" + fixed:   func(s *PlanStep) { s.Shots = &Screenshots{Attempts: 3} },
		"id:  => tests" + fixed:                    func(s *PlanStep) { s.ID = "tests" },
		"order:  => B" + fixed:                     func(s *PlanStep) { s.Order = "B" },
		"see:  => 001" + fixed:                     func(s *PlanStep) { s.Sees = "001" },
		"see:  => once" + fixed:                    func(s *PlanStep) { s.SeesStage = "once" },
		"env:  => TOKEN HOME":                      func(s *PlanStep) { s.Env = []string{"TOKEN", "HOME"} },
		"sandbox:  => strict":                      func(s *PlanStep) { s.Sandbox = "strict" },
		"network:  => none":                        func(s *PlanStep) { s.Network = Network{"none"} },
		"description is for people, and so no key": func(s *PlanStep) { s.Description, s.OrderLabel = "x", "y" },
	} {
		t.Run(key, func(t *testing.T) {
			of := func(p *Plan) { change(&p.Stages[0].Rounds[0].Steps[1]) }
			want, late := []string{"stages.once.steps.1." + key}, []string{"stages.once.steps.1." + key}
			if !strings.HasSuffix(key, fixed) {
				late[0] += "; " + RefusedCompleted
			}
			if strings.HasPrefix(key, "description") {
				want, late = []string{}, []string{}
			}
			require.Equal(t, want, compared(start, of))
			require.Equal(t, want, compared(Position{Round: 1, Step: 1}, of), "it is the next one")
			require.Equal(t, late, compared(Position{Round: 1, Step: 2}, of))
			require.Equal(t, late, compared(over, of))
		})
	}
	limits := func(p *Plan) { p.Stages[0].Rounds[0].Steps[1].Limits = &Limits{Attempts: 2} }
	require.Len(t, compared(start, limits), 1)
	require.NotContains(t, compared(over, limits)[0], ";", "limits of a completed step have no effect")
}

func TestCompareRefusesRolesOfCompletedSteps(t *testing.T) {
	writer := func(p *Plan) { p.Roles[0].Prompt = "v.md" }
	const name = "roles.writer.prompt: w.md => v.md"
	require.Equal(t, []string{name}, compared(Position{Round: 1, Step: 3}, writer), "the group has not run yet")
	require.Equal(t, []string{name + "; " + RefusedCompleted}, compared(Position{Stage: 1, Round: 1}, writer))
	critic := func(p *Plan) { p.Roles[1].With = []KeyText{{"k", "v"}} }
	require.Equal(t, []string{"roles.critic.with.k:  => {key: k, text: v}"},
		compared(Position{Stage: 1, Round: 2}, critic))
	require.Equal(t, []string{"roles.critic.with.k:  => {key: k, text: v}; " + RefusedCompleted},
		compared(Position{Stage: 2, Round: 1}, critic))
	gate := func(p *Plan) { p.Stages[0].Gate = "score > 1" }
	require.Equal(t, []string{"stages.once.quality_gate:  => score > 1; " + RefusedCompleted},
		compared(Position{Stage: 1, Round: 1}, gate))
}

func TestCompareContentsOfFiles(t *testing.T) {
	files := map[string]string{"seed.html": "1", "guide.md": "1", "a.md": "1", "w.md": "1", "c.md": "1"}
	for name, row := range map[string]struct {
		at   Position
		want Difference
	}{
		"seed.html": {Position{Round: 1}, Difference{Path: []string{"artifact", "seed"}, Refused: RefusedInput}},
		"w.md":      {Position{Round: 1}, Difference{Path: []string{"roles", "writer", "prompt"}}},
		"c.md":      {Position{Stage: 1, Round: 2}, Difference{Path: []string{"roles", "critic", "prompt"}}},
		"guide.md":  {Position{Round: 1}, Difference{Path: []string{"always_read", "0", "Guide"}}},
		"a.md": {Position{Round: 1, Step: 1}, Difference{Path: []string{"corpus", "S1", "files", "0", "A"},
			Refused: RefusedInput}},
	} {
		t.Run(name, func(t *testing.T) {
			next := map[string]string{}
			for file, digest := range files {
				next[file] = digest
			}
			next[name] = "2"
			row.want.File, row.want.Old, row.want.New = name, "1", "2"
			require.Equal(t, []Difference{row.want},
				Compare(Version{comparedPlan(), files}, Version{comparedPlan(), next}, row.at))
		})
	}
}

func TestPassedSteps(t *testing.T) {
	once, loop := PlanStage{}, PlanStage{Repeat: &Repeat{Max: 9}}
	at := Position{Stage: 2, Round: 3, Step: 4}
	for _, row := range []struct {
		stage             PlanStage
		inStage, in, step int
		want              bool
	}{
		{once, 1, 9, 9, true}, {once, 3, 1, 0, false}, {once, 2, 2, 9, true}, {once, 2, 4, 0, false},
		{once, 2, 3, 3, true}, {once, 2, 3, 4, false}, {once, 2, 3, 5, false},
		{loop, 2, 1, 0, false}, {loop, 1, 9, 9, true}, {loop, 3, 1, 0, false},
	} {
		require.Equal(t, row.want, at.Passed(row.stage, row.inStage, row.in, row.step), "%+v", row)
	}
}

func TestValuesAreCut(t *testing.T) {
	require.Equal(t, strings.Repeat("ä", 120), cutValue(strings.Repeat("ä", 120)))
	require.Equal(t, strings.Repeat("ä", 120)+"…", cutValue(strings.Repeat("ä", 121)))
}

func TestLocateNamesInheritedValues(t *testing.T) {
	const src = "pipeline: p\nlimits:\n  timeout: 5m\nroles:\n  r: {limits: {attempts: 2}}\nstages:\n" +
		"  - name: a\n    for_each: corpus\n    passes:\n      - {role: r}\n" +
		"  - name: b\n    steps:\n      - {role: r}\n" +
		"      - {run: make}\n"
	for path, want := range map[string]string{
		"limits timeout":               "3 limits timeout",
		"roles r limits attempts":      "5 roles r limits attempts",
		"roles r limits timeout":       "3 limits timeout",
		"stages a steps 0 role":        "10 stages a steps 0 role",
		"stages b steps 1 run":         "14 stages b steps 1 run",
		"stages b steps 1 limits wait": "14 stages b steps 1 limits wait",
		"stages b":                     "11 stages b",
		"stages":                       "6 stages",
		"budget usd":                   "1 budget usd",
	} {
		at, line := Locate([]byte(src), strings.Fields(path))
		require.Equal(t, want, fmt.Sprint(line, " ", strings.Join(at, " ")), path)
	}
	at, line := Locate([]byte("a: ["), []string{"budget"})
	require.Equal(t, []string{"budget"}, at)
	require.Equal(t, 1, line)
}
