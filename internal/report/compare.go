package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/passbook-run/passbook/internal/evidence"
	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Comparison compares two runs. Its JSON is the output of `starter compare --json`; null: the run does not have it.
type Comparison struct {
	A        Side         `json:"a"`
	B        Side         `json:"b"`
	Passes   []PassPair   `json:"passes"` // in the order of A, then those only in B
	Scores   []ScorePair  `json:"scores"`
	Artifact ArtifactPair `json:"artifact"`
	Left     []string     `json:"left_out"` // unreadable parts

	from [2]source
	diff difference
}

// Side is one of the runs.
type Side struct {
	RunID     string     `json:"run_id"`
	Directory string     `json:"directory"`
	Pipeline  string     `json:"pipeline"`
	Status    run.Status `json:"status"`
	Origin    string     `json:"source_run_id"` // the run that it was made from
	Mode      string     `json:"mode"`          // replay, fork, follow_up, from_run_plan
	At        string     `json:"source_checkpoint_id"`
	Passes    int        `json:"passes_settled"`
	Total     int        `json:"passes_total"`
	Cycles    int        `json:"rounds"`
	USD       float64    `json:"cost_usd"`
	Unknown   int        `json:"unknown_calls"` // calls that cost_usd lacks
	ElapsedMS int64      `json:"elapsed_ms"`    // without pauses
	Score     *float64   `json:"score"`
	Failed    int        `json:"validations_failed"`
	Errors    int        `json:"errors"`
}

// PassPair is one pass in both runs; the last one if a pass was repeated.
type PassPair struct {
	Step   string    `json:"step"`
	Round  int       `json:"round"`
	Member string    `json:"member"`
	Role   string    `json:"role"`
	A      *PassSide `json:"a"`
	B      *PassSide `json:"b"`
	Differ bool      `json:"differ"` // both have it, and outcome, verdict, score or checks differ
}

// PassSide is a pass in one run.
type PassSide struct {
	Outcome    run.Category `json:"outcome"`
	Result     string       `json:"result"`
	DurationMS int64        `json:"duration_ms"`
	USD        float64      `json:"cost_usd"`
	Unknown    int          `json:"unknown_calls"` // calls that cost_usd lacks
	Attempts   int          `json:"attempts"`
}

// ScorePair is the score of one cycle in both runs.
type ScorePair struct {
	Round int      `json:"round"`
	A     *float64 `json:"a"`
	B     *float64 `json:"b"`
}

// ArtifactPair compares the current artifacts.
type ArtifactPair struct {
	File    string `json:"file"` // "": at least one run has none
	Same    bool   `json:"same"`
	Added   int    `json:"added"` // lines only in B
	Removed int    `json:"removed"`
}

// Compare reads two run directories. Neither is changed.
func Compare(a, b rundir.Dir, o Options) (*Comparison, error) {
	c := &Comparison{Passes: []PassPair{}, Scores: []ScorePair{}, Left: []string{}}
	for i, side := range []struct {
		dir rundir.Dir
		to  *Side
	}{{a, &c.A}, {b, &c.B}} {
		s, left, err := load(side.dir, o.filled())
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", side.dir.Root, err)
		}
		c.from[i], *side.to = s, sideOf(s)
		for _, l := range left {
			c.Left = append(c.Left, side.dir.Root+": "+l)
		}
	}
	c.pairPasses()
	c.pairScores()
	c.compareArtifacts()
	return c, nil
}

func sideOf(s source) Side {
	f, q := s.figures, s.figures.Quality
	side := Side{
		RunID: s.found.RunID, Directory: s.dir.Root, Pipeline: s.found.Pipeline, Status: s.found.Status,
		Passes: f.Progress.Done, Total: f.Progress.Total, Cycles: s.book.CompletedPACycles, USD: f.Cost.Total,
		Unknown:   f.Cost.Unknown,
		ElapsedMS: f.Timing.Elapsed.Milliseconds(), Score: s.book.LastPAScore, Failed: q.Judged - q.Passed,
		Errors: q.Recovered + q.Unrecovered,
	}
	if o := originOf(s.found.History.Start); o != nil {
		side.Origin, side.Mode, side.At = o.RunID, o.Mode, o.At
	}
	return side
}

func (c *Comparison) pairPasses() {
	type key struct {
		step   string
		round  int
		member string
	}
	at := map[key]int{}
	for i, s := range c.from {
		for _, p := range s.found.Passes {
			k := key{p.Step, p.Round, p.Member}
			n, there := at[k]
			if !there {
				n, at[k] = len(c.Passes), len(c.Passes)
				c.Passes = append(c.Passes, PassPair{Step: p.Step, Round: p.Round, Member: p.Member,
					Role: cmp.Or(p.Role, p.Title)})
			}
			side := passSide(p)
			if i == 0 {
				c.Passes[n].A = &side
			} else {
				c.Passes[n].B = &side
			}
		}
	}
	for i := range c.Passes {
		p := &c.Passes[i]
		p.Differ = p.A != nil && p.B != nil && (p.A.Outcome != p.B.Outcome || p.A.Result != p.B.Result)
	}
}

func passSide(p evidence.Pass) PassSide {
	p.Reused = false // the source of an answer is not part of its content
	return PassSide{Outcome: p.Outcome, Result: result(p), DurationMS: p.DurationMS, USD: p.USD,
		Unknown: p.Unknown, Attempts: p.Attempts}
}

func (c *Comparison) pairScores() {
	for i, s := range c.from {
		for _, r := range cycles(s.book) {
			n := slices.IndexFunc(c.Scores, func(p ScorePair) bool { return p.Round == r.CycleNumber })
			if n < 0 {
				n, c.Scores = len(c.Scores), append(c.Scores, ScorePair{Round: r.CycleNumber})
			}
			if i == 0 {
				c.Scores[n].A = r.PAScore
			} else {
				c.Scores[n].B = r.PAScore
			}
		}
	}
	slices.SortFunc(c.Scores, func(x, y ScorePair) int { return x.Round - y.Round })
}

func (c *Comparison) compareArtifacts() {
	var texts [2][]byte
	for i, s := range c.from {
		if s.found.History.Start.Artifact == nil {
			return
		}
		raw, err := readLocal(s.dir, s.found.History.Start.Artifact.File)
		if err != nil && !os.IsNotExist(err) {
			c.Left = append(c.Left, err.Error())
		}
		texts[i] = raw
	}
	c.diff = difference{Title: "The artifact, from A to B"}
	c.diff.compare(texts[0], texts[1])
	c.Artifact = ArtifactPair{
		File: c.from[0].found.History.Start.Artifact.File, Same: string(texts[0]) == string(texts[1]),
		Added: c.diff.Added, Removed: c.diff.Removed,
	}
}

// contrast is one figure in both runs.
type contrast struct {
	Name, A, B, Note string
}

// contrasts returns the figures of both runs as text.
func (c *Comparison) contrasts() []contrast {
	a, b := c.A, c.B
	rows := []contrast{
		{"Pipeline", a.Pipeline, b.Pipeline, ""},
		{"Status", string(a.Status), string(b.Status), ""},
		{"Comes of", comesOf(a), comesOf(b), ""},
		{"Passes", fmt.Sprintf("%d/%d", a.Passes, a.Total), fmt.Sprintf("%d/%d", b.Passes, b.Total), ""},
		{"Rounds", fmt.Sprint(a.Cycles), fmt.Sprint(b.Cycles), ""},
		{"Cost", run.ShortCost(a.USD, a.Unknown), run.ShortCost(b.USD, b.Unknown), costDifference(a, b)},
		{"Score", scoreWords(a.Score), scoreWords(b.Score), ""},
		{"Time", seconds(a.ElapsedMS), seconds(b.ElapsedMS), ""},
		{"Checks failed", fmt.Sprint(a.Failed), fmt.Sprint(b.Failed), ""},
		{"Errors", fmt.Sprint(a.Errors), fmt.Sprint(b.Errors), ""},
	}
	return slices.DeleteFunc(rows, func(r contrast) bool { return r.Name == "Comes of" && r.A == "–" && r.B == "–" })
}

func comesOf(s Side) string {
	if s.Origin == "" {
		return "–"
	}
	return strings.TrimSpace(fmt.Sprintf("%s of %.8s %s", s.Mode, s.Origin, s.At))
}

func scoreWords(v *float64) string {
	if v == nil {
		return "–"
	}
	return tenths(v)
}

// costDifference formats the difference of costs; empty if one of them is not known.
func costDifference(a, b Side) string {
	if a.Unknown+b.Unknown > 0 {
		return ""
	}
	return signed(b.USD - a.USD)
}

// signed formats a difference of costs.
func signed(usd float64) string {
	switch {
	case usd > 0:
		return "+" + figures.USD(usd)
	case usd < 0:
		return "−" + figures.USD(-usd)
	}
	return "the same"
}

// Sentences summarizes the differences.
func (c *Comparison) Sentences() []string {
	both, differ, onlyA, onlyB := 0, 0, 0, 0
	for _, p := range c.Passes {
		switch {
		case p.B == nil:
			onlyA++
		case p.A == nil:
			onlyB++
		default:
			both++
			if p.Differ {
				differ++
			}
		}
	}
	out := []string{fmt.Sprintf("Passes: %d in both, %d of them with another result; %d only in A, %d only in B.",
		both, differ, onlyA, onlyB)}
	switch a := c.Artifact; {
	case a.File == "":
	case a.Same:
		out = append(out, a.File+" is the same in both.")
	default:
		out = append(out, fmt.Sprintf("%s differs: %s only in B, %s only in A.",
			a.File, plural(a.Added, "line"), plural(a.Removed, "line")))
	}
	return out
}

// Text writes the comparison for a terminal.
func (c *Comparison) Text(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tA\tB\t\nRun\t%.8s\t%.8s\t\nDirectory\t%s\t%s\t\n",
		c.A.RunID, c.B.RunID, path.Base(c.A.Directory), path.Base(c.B.Directory))
	for _, r := range c.contrasts() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, run.OneLine(r.A), run.OneLine(r.B), r.Note)
	}
	for _, s := range c.Scores {
		fmt.Fprintf(w, "Score of round %d\t%s\t%s\t\n", s.Round, scoreWords(s.A), scoreWords(s.B))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "\n%s\n", strings.Join(c.Sentences(), "\n"))
	return err
}

//go:embed compare.html
var compareSource string

// comparePage is the content of the page about two runs.
type comparePage struct {
	*Comparison
	Contrasts []contrast
	Trend     *Chart
	Spend     *Chart
	Strips    []strip
	Diff      difference
	Rows      []PassPair
	Left      []string
}

// Page writes one self-contained HTML page, like [Write].
func (c *Comparison) Page(to io.Writer, o Options) error {
	o = o.filled()
	v := &page{Left: c.Left}
	p := comparePage{Comparison: c, Contrasts: c.contrasts(), Diff: c.diff, Rows: newest(v, c.Passes, o.Rows, "pass")}
	for _, chart := range []struct {
		to   **Chart
		from *drawing
	}{{&p.Trend, c.trend()}, {&p.Spend, c.spending()}} {
		if chart.from != nil {
			*chart.to = chart.from.chart()
		}
	}
	p.Strips = c.strips(v, o.Pictures)
	p.Left = v.Left
	return execute(to, "compare", p)
}

// trend draws the score of each cycle in both runs.
func (c *Comparison) trend() *drawing {
	a, b := line{name: "A", ink: 1, dots: true}, line{name: "B", ink: 2, dots: true}
	for _, s := range c.Scores {
		if s.A != nil {
			a.points = append(a.points, point{X: float64(s.Round), Y: *s.A})
		}
		if s.B != nil {
			b.points = append(b.points, point{X: float64(s.Round), Y: *s.B})
		}
	}
	return together("Score of each round", whole, nil, a, b)
}

// spending draws the costs of both runs after each of their calls.
func (c *Comparison) spending() *drawing {
	var lines []line
	for i, s := range c.from {
		l := line{name: []string{"A", "B"}[i], ink: i + 1, step: true}
		all := thin(s.found.History.Costs)
		for n, p := range all {
			x := float64(n+1) * float64(len(s.found.History.Costs)) / float64(len(all))
			l.points = append(l.points, point{X: x, Y: p.USD})
		}
		lines = append(lines, l)
	}
	return together("Cost after each call", whole, axisUSD, lines...)
}

// together draws the lines that have points.
func together(title string, x, y func(float64) string, lines ...line) *drawing {
	lines = slices.DeleteFunc(lines, func(l line) bool { return len(l.points) == 0 })
	if len(lines) == 0 {
		return nil
	}
	return &drawing{title: title, x: x, y: y, lines: lines}
}

// strips returns the pictures of both runs side by side, cycle by cycle.
func (c *Comparison) strips(v *page, room int64) []strip {
	type place struct {
		round int
		name  string
	}
	var order []place
	shots := map[place]*[2]*picture{}
	for i, s := range c.from {
		for _, n := range namesOf(v, s) {
			for _, p := range n.shots {
				if k := (place{p.round, n.name}); n.first {
					if shots[k] == nil {
						order, shots[k] = append(order, k), &[2]*picture{}
					}
					shots[k][i] = &p
				}
			}
		}
	}
	slices.SortStableFunc(order, func(x, y place) int {
		return cmp.Or(x.round-y.round, cmp.Compare(rank(x.name), rank(y.name)))
	})
	var out []strip
	left := 0
	for _, k := range order {
		st := strip{Name: fmt.Sprintf("Round %d · %s", k.round, ViewOf(k.name))}
		for i, p := range shots[k] {
			side := []string{"A", "B"}[i]
			if p == nil {
				continue
			}
			pic, used, err := embed(c.from[i].dir, p.shot, room)
			if err != nil || used == 0 {
				left++
				continue
			}
			room -= used
			pic.Caption, pic.Alt = side, fmt.Sprintf("The page of run %s in round %d, %s", side, k.round,
				ViewOf(k.name))
			st.Shots = append(st.Shots, pic)
		}
		if len(st.Shots) > 0 {
			out = append(out, st)
		}
	}
	if left > 0 {
		v.leave("%s are not on the page (--pictures MB lets more in)", plural(left, "picture"))
	}
	return out
}
