package e2e_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shellBlock is how a block of commands in a page is run. Its lines are run by one shell, and each line must succeed.
type shellBlock struct {
	page, begins string   // the block, by the beginning of its first line
	before       string   // commands that make what the block takes for granted
	replace      []string // pairs of texts in the block: placeholders, and what a test cannot do
	exits        string   // the exit codes of the lines, if one is not 0
	between      string   // a command before every line but an eval
	after        string   // commands that check the effect
	want         []string // what is printed, in this order
	notRun       string   // why it is not run; the pages' commands and flags are parsed by internal/cli
}

// asks is a pipeline that asks three questions. Each call numbers its reply.
const asks = `mkdir -p asks; echo "Write." > asks/p.md; cat > asks/pipeline.yaml <<'END'
pipeline: asks
agent: {run: [sh, -c, 'echo reply'], reply: text}
roles: {writer: {prompt: p.md, gives: report}}
stages:
  - name: draft
    steps: [{role: writer}, {ask: "First?"}, {role: writer}, {ask: "Second?"}, {role: writer}, {ask: "Third?"}]
END
id() { sed -n 's/.*"run_id": *"\([^"]*\)".*/\1/p'; }
`

// shellBlocks has a row for each block of commands in the pages that is not "console test".
var shellBlocks = []shellBlock{
	{page: "README.md", begins: "make demo-review", replace: []string{"make ", "make -n "},
		want: []string{"examples/review/demo.sh"}}, // examples/README.md runs it
	{page: "README.md", begins: "PATH=$PWD/bin",
		before: `mkdir -p ~/src && cp -R examples/review/repository ~/src/app && cd ~/src/app && git init -q &&
			git add . && git commit -qm Begin && cd "$OLDPWD"; PATH=$PWD/examples/review/scripted:$PATH`,
		exits: "0 0 0 4 0", after: `test "$(git status --short)" = "?? passbook/"`,
		want: []string{"Wrote 4 files", "planner", "Started run", "It waits for a decision: Is this the right plan?",
			"Status:"}},

	{page: "docs/tutorial.md", begins: "git clone",
		replace: []string{"make build server", "ln -s ../bin . && make -n build server"},
		want:    []string{"server build", "problems: 0"}},

	{page: "docs/recovery.md", begins: "  ! Paused, a disk is full", notRun: "output: TestFullDisk compares it"},
	{page: "docs/operating.md", begins: "starter list", before: asks + `starter run asks/pipeline.yaml || test $? = 4`,
		want: []string{"asks"}},
	{page: "docs/questions.md", begins: `eval "$(starter server env)"`,
		before:  asks + `RUN=$(starter run asks/pipeline.yaml --output-dir runs/decide --json 2>/dev/null | id)`,
		replace: []string{"RUN", `"$RUN"`},
		between: `until ID=$(starter decide --show "$RUN" | sed -n 's/^Id: *//p') && test "$ID" && test "$ID" != "$LAST"
			do sleep 0.05; done; LAST=$ID`,
		want: []string{"decided: retry_feedback", "Third?"}},
	{page: "docs/amend.md", begins: "starter pause RUN --now",
		before: `echo "Write." > p.md; cat > pipeline.yaml <<'END'
pipeline: amended
agent: {run: [sh, -c, 'echo > PWD/begun; sleep 600'], reply: text}
roles: {writer: {prompt: p.md, gives: report}}
stages: [{name: draft, steps: [{role: writer}]}]
END
			sed -i.bak "s|PWD|$PWD|" pipeline.yaml; starter run pipeline.yaml --output-dir runs/amended --detach
			until test -e begun; do sleep 0.05; done; sed -i.bak 's/sleep 600/echo done/' pipeline.yaml`,
		replace: []string{"RUN", "runs/amended"}, after: "starter watch runs/amended", want: []string{"Done: 1 stage"}},

	{page: "docs/schedules.md", begins: "starter run pipeline.yaml", before: asks + "cp asks/* .",
		replace: []string{"starter run", "starter run --detach"}, want: []string{"Started run", "runs/nightly-"}},

	{page: "docs/encryption.md", begins: "mkdir -p ~/.config/passbook",
		after: `sed -i.bak "s|/home/me|$HOME|" codec.yaml; starter config --settings codec.yaml
			starter config --settings redact.yaml; ls -l ~/.config/passbook/key-2026`,
		want: []string{"codec.keys", "DATABASE_URL", "badge", "-rw-------"}},
	{page: "docs/encryption.md", begins: "starter codec serve",
		before: asks + `RUN=$(starter run asks/pipeline.yaml --output-dir runs/codec --json 2>/dev/null | id)`,
		replace: []string{"starter codec serve ", `starter codec serve --settings codec.yaml --listen 127.0.0.1:0 > served &
			SERVE=$!; trap "kill $SERVE" EXIT
			until URL=$(grep -o 'http://127[0-9.:]*' served | head -n 1 | grep .); do sleep 0.05; done `,
			"http://127.0.0.1:8234 --w", `"$URL" --w`, "…", `"$RUN"`,
			"server env", "server env --settings codec.yaml"},
		want: []string{"awaiting_phase_handoff"}},

	{page: "docs/cluster.md", begins: "docker compose", notRun: "needs Docker"},
	{page: "docs/cluster.md", begins: "scripts/cluster", notRun: "needs PostgreSQL"},
	{page: "docs/cluster.md", begins: "TEMPORAL_ADDRESS=127.0.0.1:17233", before: asks + "cp asks/* .",
		replace: []string{"127.0.0.1:17233", "$SERVER", "/var/tmp/cluster/state", "$PASSBOOK_STATE_DIR"},
		exits:   "4", want: []string{"First?"}},
	{page: "docs/cluster.md", begins: "TEMPORAL_ADDRESS=eu-central-1", notRun: "needs an account"},
	{page: "docs/cluster.md", begins: "PASSBOOK_DEPLOYMENT_NAME", notRun: "TestWorkerDeployment does it"},
	{page: "docs/cluster.md", begins: "tcld namespace", notRun: "needs an account; docs_test.go compares the names"},

	{page: "docs/console.md", begins: "TOKEN=",
		before: asks + `starter console --listen 127.0.0.1:0 > served & CONSOLE=$!; trap "kill $CONSOLE" EXIT
			until URL=$(sed -n 's,^API *\(http.*\)/openapi.json,\1,p' served | grep .); do sleep 0.05; done`,
		replace: []string{"http://127.0.0.1:8400", "$URL", "asks/pipeline.yaml", "'$PWD'/asks/pipeline.yaml"},
		want:    []string{`"needs_input":true`, "decided: continue", `"kind":"phase_handoff.decided"`, "is revoked"}},
	{page: "docs/console.md", begins: "starter console --listen", notRun: "internal/console tests it"},
	{page: "docs/console.md", begins: "starter console --behind-proxy", notRun: "internal/console tests it"},
	{page: "docs/console.md", begins: "starter console", notRun: "serves until interrupted: the next block uses it"},
	{page: "docs/releases.md", begins: "sudo editor", notRun: "needs root: scripts/try-package runs what the units start"},
}

// shownOutput is a pattern of the output in a block: pairs replace what differs from run to run.
func shownOutput(t *testing.T, page, begins string, pairs ...string) string {
	t.Helper()
	blocks, err := blocksOf(page, string(read(t, filepath.Join(project, page))), shellBlocks)
	require.NoError(t, err)
	for _, b := range blocks {
		if b.row != nil && b.row.begins == begins {
			return strings.NewReplacer(pairs...).Replace(regexp.QuoteMeta(strings.TrimSpace(b.text)))
		}
	}
	require.FailNow(t, "no such block", begins)
	return ""
}

// script is what the shell runs for a block.
func (s shellBlock) script(text string) (string, error) {
	for i := 0; i < len(s.replace); i += 2 {
		if !strings.Contains(text, s.replace[i]) {
			return "", fmt.Errorf("%s: the block %q has no %q", s.page, s.begins, s.replace[i])
		}
		text = strings.ReplaceAll(text, s.replace[i], s.replace[i+1])
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\\\n", " ")), "\n")
	exits := strings.Fields(cmp.Or(s.exits, strings.Repeat("0 ", len(lines))))
	if len(exits) != len(lines) {
		return "", fmt.Errorf("%s: the block %q has %d lines and %d exit codes", s.page, s.begins, len(lines), len(exits))
	}
	script := "set -e\n" + s.before + "\nset +e\n"
	for i, line := range lines {
		between := s.between
		if strings.HasPrefix(line, "eval ") { // it prepares the terminal
			between = ""
		}
		script += fmt.Sprintf("%s\n%s\ncode=$?; test $code = %s || { echo \"line %d: exit code $code\"; exit 99; }\n",
			between, line, exits[i], i+1)
	}
	return script + "set -e\n" + s.after, nil
}
