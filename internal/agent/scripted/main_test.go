package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// The test binary, started again with this variable, is the agent itself, or an engine that runs it as its child.
const playing = "SCRIPTED_TEST_PLAYS"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	switch os.Getenv(playing) {
	case "agent":
		os.Exit(Main(os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	case "engine":
		engine()
	}
	os.Exit(m.Run())
}

// engine runs the agent as its child, as a worker does, and waits to be killed by it.
func engine() {
	child, err := begin(commandIn(os.Getenv("SCRIPTED_TEST_DIR"), os.Getenv(FaultsEnv)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-child.Done()
	os.Exit(0)
}

// begin starts the agent under this binary as its supervisor.
func begin(c agent.Command) (*agent.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := supervisor.Start([]string{self, supervisor.Verb}, c.Dir, nil)
	if err != nil {
		return nil, err
	}
	return agent.Start(p, c)
}

// commandIn is the agent as a process, its prompt and its answer in dir.
func commandIn(dir, faults string) agent.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	prompt := filepath.Join(dir, "prompt.md")
	if err := os.WriteFile(prompt, []byte(builderPrompt), 0o600); err != nil {
		panic(err)
	}
	return agent.Command{
		Argv: []string{self}, Dir: dir, Prompt: prompt, Stdout: filepath.Join(dir, "stdout"),
		Stderr:   filepath.Join(dir, "stderr"),
		ExtraEnv: map[string]string{playing: "agent", FaultsEnv: faults, CallLogEnv: filepath.Join(dir, "calls.jsonl")},
	}
}

const (
	builderPrompt = "# DETERMINISTIC ORCHESTRATOR — [S1] Pass 1/8 — Rotation A (Base ordering) — Builder — " +
		"Research\n\nRole: builder\nPass: 1 of 56\nSet: S1 — Research\n\n---\n\n" +
		"```html\n<!DOCTYPE html>\n<main data-polish=\"1\">\n<ul class=\"woven\"></ul>\n</main></html>\n```\n\n---\n\n" +
		"## [1/2] R1 (PRIMACY POSITION)\n\n# One\n\ninsight: Less & more\n\n## [2/2] R2\n\ninsight: " +
		"Two\n\n---\n\nWeave.\n"
	verifierPrompt = "# DETERMINISTIC ORCHESTRATOR — [S1] Pass 2/8 — Rotation A — Verifier — Research\n\nRole: " +
		"verifier\nPass: 2 of 56\nSet: S1 — Research\n\n---\n\n" +
		"```html\n<ul class=\"woven\">\n<li data-src=\"R1\" data-depth=\"2\">x</li>\n<li data-src=\"R2\" " +
		"data-depth=\"1\">x</li>\n</ul></html>\n```\n\n---\n\n" +
		"## [1/3] R1 (PRIMACY POSITION)\n\ninsight: One\n\n## [2/3] R2\n\ninsight: Two\n\n## [3/3] R3\n\ninsight: " +
		"Three\n"
)

// answerOf runs the agent and returns its envelope.
func answerOf(t *testing.T, prompt string, env map[string]string) envelope {
	t.Helper()
	code, stdout, stderr := invoke(prompt, env)
	require.Zero(t, code, stderr)
	var e envelope
	require.NoError(t, json.Unmarshal([]byte(stdout), &e))
	return e
}

func invoke(prompt string, env map[string]string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Main(strings.NewReader(prompt), &out, &err, func(name string) string { return env[name] })
	return code, out.String(), err.String()
}

func TestBuilderHandsOverTheWholePage(t *testing.T) {
	require.Equal(t, "```html\n<!DOCTYPE html>\n<main data-polish=\"1\">\n<ul class=\"woven\">\n"+
		"<li data-src=\"R1\" data-depth=\"1\">Less &amp; more</li>\n<li data-src=\"R2\" data-depth=\"1\">Two</li>\n"+
		"</ul>\n</main></html>\n```\n"+
		"\n<!-- CONVICTION_ADDITION_START -->\nR1, R2 went deeper. Keep the rest.\n<!-- CONVICTION_ADDITION_END -->\n"+
		"\n<!-- DISCOVERY_LOG_START -->\n- 2 cards\n- R1 read first\n- order matters\n<!-- DISCOVERY_LOG_END -->\n",
		answerOf(t, builderPrompt, nil).Result)
}

func TestVerifierReportsUnderFiveHeadings(t *testing.T) {
	reply := answerOf(t, verifierPrompt, nil).Result
	require.True(t, strings.HasPrefix(reply, "## WHAT IS DEEPLY INTEGRATED\n- R1: carries the page, depth 2\n\n"+
		"## WHAT IS SURFACE-LEVEL\n- R2: named once, nothing builds on it yet\n\n"+
		"## WHAT IS ABSENT\n- R3: not to be found\n\n## WHAT SURPRISED ME\n- "), reply)
	require.Contains(t, reply, "\n## WHAT THE NEXT BUILDER SHOULD ATTEND TO\n- ")
	woven := strings.Replace(verifierPrompt, `data-depth="1"`, `data-depth="2"`, 1)
	require.Contains(t, answerOf(t, woven, nil).Result, "## WHAT IS SURFACE-LEVEL\n(none)\n")
}

func TestObservationsDecideWhatIsFixed(t *testing.T) {
	observe := func(report string) string {
		prompt := strings.Replace(builderPrompt, "Pass 1/8", "Pass 3/8", 1)
		reply := answerOf(t, strings.Replace(prompt, "```html", report+"\n\n---\n\n```html", 1), nil).Result
		_, output, _ := strings.Cut(reply, "CONVICTION_ADDITION_START -->\n")
		return output[:strings.Index(output, ".")]
	}
	require.Equal(t, "R2 went deeper", observe("## WHAT IS SURFACE-LEVEL\n- R1: x\n\n## WHAT IS ABSENT\n- R2: x\n"))
	require.Equal(t, "R1 went deeper", observe("## WHAT IS SURFACE-LEVEL\n- R1: x\n\n## WHAT IS ABSENT\n(none)\n"))
	require.Equal(t, "R1, R2 went deeper", observe("## WHAT IS ABSENT\n(none)\n"))
}

func TestSetsThatAreDoneEarlyChangeNothing(t *testing.T) {
	woven := listOpen + "\n<li data-src=\"R1\" data-depth=\"2\">x</li>\n<li data-src=\"R2\" data-depth=\"2\">x</li>\n" +
		listClose
	prompt := strings.Replace(builderPrompt, listOpen+listClose, woven, 1)
	require.NotContains(t, answerOf(t, prompt, nil).Result, woven)
	require.Contains(t, answerOf(t, strings.ReplaceAll(prompt, "S1", "S2"), nil).Result, woven)
}

func TestRefinePolishesThePage(t *testing.T) {
	prompt := strings.Replace(builderPrompt, "Role: builder\nPass: 1 of 56", "Role: refine\nRound: 1 of 6", 1)
	require.Contains(t, answerOf(t, prompt, nil).Result, `<main data-polish="2">`)
}

func TestSamePromptSameBytes(t *testing.T) {
	_, first, _ := invoke(builderPrompt, nil)
	t.Chdir(t.TempDir())
	_, second, _ := invoke(builderPrompt, map[string]string{CallLogEnv: "calls.jsonl"})
	require.Equal(t, first, second)
	_, other, _ := invoke(builderPrompt+"\n", nil)
	require.NotEqual(t, first, other, "the session id is the prompt's digest")
}

func TestEnvelopeCountsCharacters(t *testing.T) {
	e := answerOf(t, verifierPrompt, nil)
	require.Equal(t, tokens(verifierPrompt), e.Usage.Input)
	require.Equal(t, tokens(e.Result), e.Usage.Output)
	require.InDelta(t, float64(e.Usage.Input)*15e-6+float64(e.Usage.Output)*75e-6, e.CostUSD, 1e-12)
	require.Equal(t, 1, tokens("äöüß"))
}

func TestWithoutAPageThereIsNothingToBuildOn(t *testing.T) {
	for _, role := range []string{"builder", "verifier", "refine", "auditor-A"} {
		code, stdout, stderr := invoke("# DETERMINISTIC ORCHESTRATOR — X\n\nRole: "+role+"\nPass: 1 of 56\n", nil)
		require.Equal(t, 1, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "the prompt holds")
	}
}

func TestCallLogHasALineForEachStartAndAnswer(t *testing.T) {
	file := t.TempDir() + "/calls.jsonl"
	e := answerOf(t, builderPrompt, map[string]string{CallLogEnv: file})
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	dir, err := os.Getwd()
	require.NoError(t, err)
	want := []callLine{
		{Event: "start", At: "001", PID: os.Getpid(), Dir: dir, PromptSHA256: digest(builderPrompt)},
		{
			Event: "answered", At: "001", PID: os.Getpid(), Dir: dir, PromptSHA256: digest(builderPrompt),
			ReplySHA256: digest(e.Result),
		},
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.Len(t, lines, len(want))
	for i := range want {
		var line callLine
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &line))
		require.Equal(t, want[i], line)
	}
}

func TestCallsAreNamedByTheirContext(t *testing.T) {
	for lines, at := range map[string]string{
		"Role: builder\nPass: 35 of 56\nSet: S5 — The Weaver's": "035",
		"Role: Verifier\nPass: 2 of 56\n":                       "002",
		"Role: auditor-B\nRound: 2 of 6":                        "auditor-B-2",
		"Role: Auditor C\nRound: 3":                             "auditor-C-3",
		"Role: weaver\nRound: 1 of 6":                           "weaver-1",
		"Role: refine\nRound: 10 of 12":                         "refine-10",
		"Role: implementer\nRound: 2 of 3":                      "implementer-2",
	} {
		c := parse(
			"# DETERMINISTIC ORCHESTRATOR — [S5] Pass 3/8 — Cycle 7\n\n" + lines +
				"\n\n---\n\nRole: refine\nPass: 9 of 9\nRound: 9\n",
		)
		require.Equal(t, at, c.at(), lines)
	}
	require.Equal(t, "S5", parse("# DETERMINISTIC ORCHESTRATOR — X\n\nSet: S5 — Grammar\n").set)
}

func TestUnknownRolesGetAReport(t *testing.T) {
	prompt := "# DETERMINISTIC ORCHESTRATOR — X\n\nRole: implementer\nRound: 2 of 3\n"
	require.Contains(t, answerOf(t, prompt, nil).Result, `"implementer"`)
}

func TestWeaverTakesTheMeanOfWhatItGets(t *testing.T) {
	weigh := func(reports string) string {
		reply := answerOf(t, "# DETERMINISTIC ORCHESTRATOR — X\n\nRole: weaver\nRound: 1 of 6\n\n---\n\n"+reports,
			nil).Result
		lines := strings.Split(strings.TrimSpace(reply), "\n")
		return lines[len(lines)-1]
	}
	require.Equal(t, "PA-05: 3.0/4", weigh("Score: 2.5/4\n\nScore: 3.0/4\n\n**Score:** 3.5/4\n"))
	require.Equal(t, "PA-05: 2.75/4", weigh("Score: 2.5/4\n\nScore: 3.0/4\n"))
	require.Equal(t, "PA-05: 3.5/4", weigh("Score: 3.0/4\n\nScore: 4.0/4\n"))
	require.Equal(t, "No auditor gave a score, so there is none to weigh.", weigh("None.\n"))
}
