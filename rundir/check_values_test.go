package rundir_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// sums is what the test counts itself.
type sums struct {
	rundir.RoleCost
}

func (s *sums) add(c run.Spend) {
	s.InputTokens += c.Tokens.Input
	s.OutputTokens += c.Tokens.Output
	s.CostUSD = run.Cents(s.CostUSD + c.USD)
}

// books has the same values as the records, counted by the test while it writes the journal.
type books struct {
	calls            int64
	role, set, cycle map[string]*sums
	pass             map[string]*sums // settled ones, with all of their attempts
	duration         map[string]int64
	cumulative       []float64
	total            float64
	pages            map[int]string // that refine of a cycle received
	invalid          int
	wrong            int // the pass with a failed check
}

// varied is a run in which no two calls have the same cost, duration or page.
func varied(t *testing.T) (*story, *books) {
	t.Helper()
	s := newStory(t)
	b := &books{role: map[string]*sums{}, set: map[string]*sums{}, cycle: map[string]*sums{}, pass: map[string]*sums{},
		duration: map[string]int64{}, pages: map[int]string{}, wrong: 2}
	s.cost = func(p run.Pass) run.Spend {
		b.calls++
		n := b.calls
		c := run.Spend{USD: 0.01 * float64(n*n), Tokens: run.Tokens{Input: 1000 * n, Output: 7 * n * n}, Model: "m"}
		for _, of := range b.rows(p) {
			of.add(c)
		}
		b.total = run.Cents(b.total + c.USD)
		b.cumulative = append(b.cumulative, b.total)
		return c
	}
	s.change = func(end *run.PassEnd) {
		end.DurationMS = 1000 + 10*b.calls
		for _, of := range b.rows(end.Pass) {
			of.PassCount++
		}
		b.duration[key(end.Pass)] = end.DurationMS
		if end.Number == b.wrong {
			end.Validation.Passed = false
			b.invalid++
		}
		if end.Role == "refine" {
			b.pages[end.Round] = string(s.blobs[end.Before])
		}
		if end.Artifact != nil {
			page := s.blobs.keep(fmt.Sprintf("<html>%s</html>", strings.Repeat("ä", int(10+b.calls))))
			end.Artifact = &page
		}
	}
	return s, b
}

// used is what a pass has used, with all of its attempts.
type used struct{ input, output, ms int64 }

func (b *books) used(p run.Pass) used {
	at := key(p)
	return used{b.pass[at].InputTokens, b.pass[at].OutputTokens, b.duration[at]}
}

// key names a pass in the books.
func key(p run.Pass) string { return fmt.Sprintf("%s%s/%d", p.Step, p.Member, p.Round) }

// rows are those to which a call of a pass is added.
func (b *books) rows(p run.Pass) []*sums {
	at := func(m map[string]*sums, name string) *sums {
		if m[name] == nil {
			m[name] = &sums{}
		}
		return m[name]
	}
	role := p.Role
	if p.Number == 0 {
		role = "pa" // requirement 002 §1.6: one row for all calls of the cycles
	}
	all := []*sums{at(b.role, role), at(b.pass, key(p))}
	if p.Set != "" {
		return append(all, at(b.set, p.Set))
	}
	return append(all, at(b.cycle, strconv.Itoa(p.Round)))
}

// vary writes the run: a retried pass with a failed check, a pause, and three cycles of which the last has no refine.
func (s *story) vary() {
	s.start()
	s.pass(1)
	s.begin(about(2), 1)
	s.fail(about(2), 1)
	s.begin(about(2), 2)
	s.end(about(2), "ok", 2)
	s.checkpoint("cp-S1", 2)
	s.pause()
	s.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	s.pass(3)
	s.pass(4)
	s.add(run.KindPhaseEnd, run.PhaseEnd{Key: "write", Title: "Write", Outcome: "ok", Round: 1})
	for n, score := range []float64{2, 3, 3.6} {
		s.cycle(n+1, score)
	}
	s.finish(run.Done)
}

// TestRecordedValues compares the values of state.json, the logs and the evidence with those that the test has counted.
func TestRecordedValues(t *testing.T) {
	s, b := varied(t)
	s.vary()
	d := written(t, s)
	state, err := rundir.Records(d)
	require.NoError(t, err)

	require.Equal(t, plain(b.role), state.Cost.ByRole)
	require.Equal(t, plain(b.set), state.Cost.BySubset)
	require.Equal(t, plain(b.cycle), state.Cost.ByPACycle)
	require.InDelta(t, b.total, state.Cost.TotalEstimatedCostUSD, 1e-9)
	for n, p := range state.PassRecords {
		i, err := strconv.Atoi(n)
		require.NoError(t, err)
		require.Equal(t, b.used(about(i)), used{p.Tokens.InputTokens, p.Tokens.OutputTokens, p.DurationMS}, n)
		require.InDelta(t, b.pass[key(about(i))].CostUSD, p.Tokens.EstimatedCostUSD, 1e-9, n)
		require.Equal(t, i != b.wrong, p.ValidationPassed, n)
	}
	require.Len(t, state.PassRecords, 4)
	require.Equal(t, 1, b.invalid)
	for _, c := range state.Checkpoints {
		require.Equal(t, b.invalid, c.QualitySnapshot.ValidationFailureCount, c.ID)
	}
	require.Len(t, state.Checkpoints, 5)
	cyclesMatch(t, d, state, b, s.lasted())
	logsMatch(t, d, s, b)
}

// plain are the rows without what only the test knows.
func plain(of map[string]*sums) map[string]rundir.RoleCost {
	all := map[string]rundir.RoleCost{}
	for name, row := range of {
		all[name] = row.RoleCost
	}
	return all
}

// cyclesMatch compares each round of the repeated stage, and the page that its refine received.
func cyclesMatch(t *testing.T, d rundir.Dir, state rundir.PipelineState, b *books, lasted map[int]int64) {
	t.Helper()
	require.Len(t, state.PACycleRecords, 3)
	require.Len(t, b.pages, 2)
	for n := 1; n <= 3; n++ {
		c := state.PACycleRecords[strconv.Itoa(n)]
		of := func(member, role string) used { return b.used(run.Pass{Step: role, Member: member, Round: n}) }
		in := func(tokens rundir.CallTokens, ms int64) used {
			return used{tokens.InputTokens, tokens.OutputTokens, ms}
		}
		require.Equal(t, lasted[n], c.DurationMS)
		require.Len(t, c.Auditors, 2)
		for i, id := range []string{"auditor-A", "auditor-B"} {
			a := c.Auditors[i]
			require.Equal(t, id, a.ID)
			require.Equal(t, of(id, "auditor"), in(a.Tokens, a.DurationMS))
		}
		require.Equal(t, of("", "weaver"), in(c.Weaver.Tokens, c.Weaver.DurationMS))
		require.InDelta(t, b.cycle[strconv.Itoa(n)].CostUSD, c.TotalCycleCostUSD, 1e-9)
		if n == 3 {
			require.Nil(t, c.Refine)
			continue
		}
		require.Equal(t, of("", "refine"), in(c.Refine.Tokens, c.Refine.DurationMS))
		before, err := d.ReadFile(c.Refine.BackupPath)
		require.NoError(t, err)
		require.Equal(t, b.pages[n], string(before), "the page that refine of cycle %d received", n)
	}
	require.NotEqual(t, b.pages[1], b.pages[2])
}

// logsMatch compares the cost log, the log of passes, the decisions and the log for people.
func logsMatch(t *testing.T, d rundir.Dir, s *story, b *books) {
	t.Helper()
	costs, skipped, err := rundir.Rows[rundir.CostRow](d, rundir.CostLog)
	require.NoError(t, err)
	require.Zero(t, skipped)
	var cumulative []float64
	for _, row := range costs {
		cumulative = append(cumulative, row.Cumulative)
	}
	require.InDeltaSlice(t, b.cumulative, cumulative, 1e-9)
	type passRow struct {
		Pass       int   `json:"pass"`
		DurationMS int64 `json:"durationMs"`
		Input      int64 `json:"inputTokens"`
		Output     int64 `json:"outputTokens"`
		Valid      bool  `json:"validationPassed"`
		Retries    int   `json:"retries"`
		Chars      int   `json:"artifactSizeChars"`
	}
	passes, _, err := rundir.Rows[passRow](d, rundir.PassesLog)
	require.NoError(t, err)
	for i, row := range passes[:4] {
		of := key(about(i + 1))
		want := passRow{Pass: i + 1, DurationMS: b.duration[of], Input: b.pass[of].InputTokens,
			Output: b.pass[of].OutputTokens, Valid: i+1 != b.wrong}
		if i+1 == 2 {
			want.Retries = 1
		}
		if i%2 == 0 { // a builder
			want.Chars = s.chars(i + 1)
		}
		require.Equal(t, want, row)
	}
	text, err := d.ReadFile(rundir.TextLog)
	require.NoError(t, err)
	for _, i := range []int{1, 3} {
		require.Contains(t, string(text), fmt.Sprintf("Artifact updated (%d chars)", s.chars(i)))
	}
	decisions, _, err := rundir.Rows[struct{ Decision string }](d, rundir.DecisionsLog)
	require.NoError(t, err)
	var names []string
	for _, row := range decisions {
		names = append(names, row.Decision)
	}
	require.Equal(t, "fresh-start", names[0])
	require.Contains(t, names, "resume")
}

// lasted is how many milliseconds each cycle took: events are a second apart.
func (s *story) lasted() map[int]int64 {
	all, begun := map[int]int64{}, int64(0)
	for _, line := range s.lines {
		e, err := run.ParseEvent([]byte(line))
		require.NoError(s.t, err)
		switch e.Kind {
		case run.KindPhaseStart:
			begun = e.Seq
		case run.KindPhaseEnd:
			var p run.PhaseEnd
			if e.Decode(&p); p.Repeats {
				all[p.Round] = 1000 * (e.Seq - begun)
			}
		}
	}
	return all
}

// chars counts the characters of the page that a numbered pass has made.
func (s *story) chars(number int) int {
	for _, line := range s.lines {
		e, err := run.ParseEvent([]byte(line))
		require.NoError(s.t, err)
		var p run.PassEnd
		if e.Kind != run.KindPassEnd {
			continue
		}
		if e.Decode(&p); p.Number == number && p.Artifact != nil {
			return len([]rune(string(s.blobs[p.Artifact.Digest])))
		}
	}
	return 0
}
