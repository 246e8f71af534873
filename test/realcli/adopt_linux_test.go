package realcli

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/modelapi"
)

// firstWords is what the user asks for in the terminal.
const firstWords = "Fix the total of the bill: it lacks heron."

// untilReset are the seconds until the reset of a usage limit: codex reports it in whole minutes.
var untilReset = map[string]int{Claude().Name: 20, Codex().Name: 60}

// terminal is a repository in which a user talks with a program.
type terminal struct {
	t        *testing.T
	cli      CLI
	program  []string
	api      *modelapi.API
	programs string // of passbook
	checkout string // of this module
	root     string
	environ  []string
}

// TestAdoptedConversations adopts conversations with the real programs: killed in a tool call, ended after an answer,
// and ended by a usage limit.
func TestAdoptedConversations(t *testing.T) {
	if host := sandbox.Examine(); host.Problem != "" {
		t.Skip("there is no sandbox here: " + host.Problem)
	}
	t.Parallel()
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	programs, err := testenv.Programs(checkout, t.TempDir(), "./starter", "./worker", "./internal/supervisor/passbook-call")
	require.NoError(t, err)
	for _, cli := range []CLI{Claude(), Codex()} {
		t.Run(cli.Name, func(t *testing.T) {
			t.Parallel()
			w := newTerminal(t, cli, checkout, programs)
			t.Run("killed in a tool call", func(t *testing.T) { w.at(t).killed() })
			t.Run("ended", func(t *testing.T) { w.at(t).ended() })
		})
		t.Run(cli.Name+" limited", func(t *testing.T) { // it waits for the reset while the others work
			t.Parallel()
			newTerminal(t, cli, checkout, programs).limited()
		})
	}
}

func newTerminal(t *testing.T, cli CLI, checkout, programs string) *terminal {
	t.Helper()
	w := &terminal{t: t, cli: cli, program: installed(t, cli), api: cli.API(), programs: programs, checkout: checkout, root: t.TempDir()}
	t.Cleanup(w.api.Close)
	home, bin := filepath.Join(w.root, "home"), filepath.Join(w.root, "bin")
	for _, dir := range []string{home, bin} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, cli.WriteHome(home, w.api.URL))
	require.NoError(t, os.Symlink(w.program[0], filepath.Join(bin, cli.Name)))
	address := strings.TrimPrefix(w.api.URL, "http://")
	settings := filepath.Join(w.root, "settings.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("sandbox: {network: [internet, '"+address+"']}\n"), 0o600))
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	w.environ = append(testenv.CleanEnv(os.Environ()), "HOME="+home, "XDG_CACHE_HOME="+cache,
		"PATH="+bin+":"+programs+":"+os.Getenv("PATH"), "PASSBOOK_STATE_DIR="+filepath.Join(w.root, "state"),
		"PASSBOOK_SETTINGS="+settings, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=A",
		"GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@localhost")
	for _, variable := range cli.Environ(w.api.URL) { // a usage limit is one of a subscription
		if key, is := strings.CutPrefix(variable, "ANTHROPIC_API_KEY="); is {
			variable = "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-" + key
		}
		w.environ = append(w.environ, variable)
	}
	w.command(checkout, "starter", "server", "start") // from where the embedded server is built once
	t.Cleanup(func() { w.command(checkout, "starter", "server", "stop", "--now") })
	return w
}

func (w *terminal) at(t *testing.T) *terminal {
	t.Helper()
	next := *w
	next.t = t
	return &next
}

func (w *terminal) execute(dir, name string, args ...string) (string, int) {
	w.t.Helper()
	path := filepath.Join(w.programs, name)
	if name != "starter" {
		path = name
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = dir, w.environ
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (w *terminal) command(dir, name string, args ...string) string {
	w.t.Helper()
	out, code := w.execute(dir, name, args...)
	require.Zero(w.t, code, "%s %s: %s", name, args, out)
	return out
}

// repository makes a repository with uncommitted and untracked files.
func (w *terminal) repository(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.root, name)
	w.write(dir, map[string]string{"Makefile": "test:\n\tgrep -q heron bill.txt\n", "bill.txt": "1\n", "notes.txt": "old\n",
		".gitignore": "*.log\n", "sub/deep.txt": "deep\n"})
	w.command(dir, "git", "init", "-q", "-b", "main")
	w.command(dir, "git", "add", ".")
	w.command(dir, "git", "commit", "-q", "-m", "base")
	w.write(dir, map[string]string{"notes.txt": "not committed\n", "draft.txt": "not tracked\n", "big.log": "ignored\n"})
	return dir
}

func (w *terminal) write(dir string, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(w.t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// shell is the tool with which a model runs a command.
func (w *terminal) shell(text, command string) modelapi.Turn {
	if w.cli.Name == "codex" {
		return modelapi.Turn{Text: text, Tool: "exec_command", Input: map[string]string{"cmd": command}}
	}
	return modelapi.Turn{Text: text, Tool: "Bash", Input: map[string]string{"command": command, "description": "Write"}}
}

// talk starts the program in a folder, with the first words of the user.
func (w *terminal) talk(dir string, turns ...modelapi.Turn) *exec.Cmd {
	w.t.Helper()
	w.api.Script(turns...)
	args := append([]string{}, "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits",
		"--allowedTools", "Bash")
	if w.cli.Name == "codex" {
		args = []string{"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"}
	}
	cmd := exec.Command(w.program[0], args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, w.environ, strings.NewReader(firstWords)
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// reviewed are the answers of a run: a round that the review rejects, and one that it approves.
func (w *terminal) reviewed() []modelapi.Turn {
	judged := func(text string) string { return "Checked.\n\n```json\n" + text + "\n```" }
	return []modelapi.Turn{
		w.shell("I continue.", "echo heron >>bill.txt"), {Text: "The bill has the heron."},
		{Text: judged(`{"verdict": "rejected", "ship_ready": false, "findings": [{"severity": "high", "text": "No egret."}], ` +
			`"blockers": ["No egret."], "gaps": []}`)},
		w.shell("I add it.", "echo egret >>bill.txt"), {Text: "The bill has the egret."},
		{Text: judged(`{"verdict": "approved", "ship_ready": true, "findings": [], "blockers": [], "gaps": []}`)},
	}
}

var idInList = regexp.MustCompile(`(?m): ([0-9a-f-]{36})$`)

// session returns the newest conversation of a repository.
func (w *terminal) session(dir string) string {
	w.t.Helper()
	list := w.command(dir, "starter", "adopt")
	require.Contains(w.t, list, firstWords)
	found := idInList.FindStringSubmatch(list)
	require.NotNil(w.t, found, list)
	return found[1]
}

// digest is of all files below a folder, with their times.
func (w *terminal) digest(dir string) string {
	w.t.Helper()
	var all bytes.Buffer
	require.NoError(w.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %s %s %x\n", path, info.Mode(), info.ModTime(), sha256.Sum256(text))
		return err
	}))
	for _, args := range [][]string{{"status", "--porcelain"}, {"rev-parse", "HEAD", "HEAD^{tree}"}, {"symbolic-ref", "HEAD"}} {
		fmt.Fprintln(&all, w.command(dir, "git", args...))
	}
	return all.String()
}

// original returns the file of a conversation.
func (w *terminal) original(id string) string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.root, "home", map[string]string{"claude": ".claude/projects/*/",
		"codex": ".codex/sessions/*/*/*/*"}[w.cli.Name]+id+".jsonl"))
	require.NoError(w.t, err)
	require.Len(w.t, found, 1)
	return found[0]
}

// adopt adopts a conversation to its end, and checks what it must have left. It returns the directory of the run.
func (w *terminal) adopt(dir, below, id string, args ...string) (string, string) {
	w.t.Helper()
	file := w.original(id)
	talk, err := os.ReadFile(file)
	require.NoError(w.t, err)
	before := w.digest(dir)
	asked, _ := w.api.Asked()
	w.api.Script(w.reviewed()...)
	out := w.command(filepath.Join(dir, below), "starter", append([]string{"adopt", "--session", id}, args...)...)
	again, err := os.ReadFile(file)
	require.NoError(w.t, err)
	require.Equal(w.t, string(talk), string(again), "the conversation is as before")
	require.Equal(w.t, before, w.digest(dir), "the checkout is as before")
	runs, err := filepath.Glob(filepath.Join(w.root, "state", "runs", filepath.Base(dir), "adopted-*"))
	require.NoError(w.t, err)
	require.Len(w.t, runs, 1, out)
	now, err := rundir.At(runs[0]).Now()
	require.NoError(w.t, err)
	require.Equal(w.t, run.Done, now.State.Status, out)
	require.Equal(w.t, 2, now.State.Rounds, out)
	branch := now.Meta.Workspace.Branch
	all, _ := w.api.Asked()
	first := string(all[len(asked)].Body)
	require.Contains(w.t, first, firstWords)
	require.Contains(w.t, first, "I read the bill.", "the first request carries the conversation")
	require.Contains(w.t, first, "Your conversation continues")
	require.Len(w.t, all, len(asked)+6)
	require.NotContains(w.t, string(all[len(asked)+2].Body), "I read the bill.", "the reviewer begins its own")
	again = all[len(asked)+3].Body
	require.Contains(w.t, string(again), "I read the bill.", "the next round continues the conversation")
	require.Contains(w.t, string(again), "No egret.")
	w.command(dir, "git", "cat-file", "-e", branch+":draft.txt")
	require.Equal(w.t, "1\nheron\negret\n", w.command(dir, "git", "show", branch+":bill.txt"))
	require.Equal(w.t, "not committed\n", w.command(dir, "git", "show", branch+":notes.txt"))
	status := w.command(dir, "starter", "status", runs[0])
	require.Regexp(w.t, `Cost before: +(≥ )?\$0\.\d\d before the adoption, not in the budget`, status)
	require.Contains(w.t, w.command(dir, "starter", "report", runs[0], "--markdown"), "before the adoption, not in the budget")
	return runs[0], first
}

// killed: the conversation is refused while its program runs, and adopted after it was killed in a tool call.
func (w *terminal) killed() {
	t, dir := w.t, w.repository("killed")
	cmd := w.talk(dir, w.shell("I read the bill.", "echo begun >begun.txt; sleep 60"))
	for late := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "begun.txt")); err == nil {
			break
		}
		require.False(t, time.Now().After(late), "the tool has not begun")
	}
	id := w.session(dir)
	require.Contains(t, w.command(dir, "starter", "adopt"), fmt.Sprintf("is open in process %d", cmd.Process.Pid))
	out, code := w.execute(dir, "starter", "adopt", "--session", id)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, fmt.Sprintf("(process %d of %s)", cmd.Process.Pid, w.cli.Name))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Contains(t, w.command(dir, "starter", "adopt"), "was killed in a tool call")
	printed := w.command(dir, "starter", "adopt", "--session", id, "--print")
	require.Contains(t, printed, "pipeline: adopt")
	require.Contains(t, printed, "make test")
	require.NoDirExists(t, filepath.Join(w.root, "state", "runs"))

	other := w.repository("other")
	out, code = w.execute(other, "starter", "adopt", "--session", id)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, dir)
	require.NotContains(t, w.command(other, "starter", "adopt"), id)

	w.write(dir, map[string]string{"notes.txt": "not committed\n", "sub/deep.txt": "changed since\n"})
	before, first := w.adopt(dir, "", id)
	require.Contains(t, first, "`sub/deep.txt`")
	require.NotContains(t, first, "`Makefile`")
	out = w.command(dir, "starter", "adopt", "--session", id)
	require.Contains(t, out, "nothing to do")
	require.Contains(t, out, before)
}

// ended: the conversation ended after an answer, and its file was damaged afterwards. It is adopted in a folder of its
// repository.
func (w *terminal) ended() {
	t, dir := w.t, w.repository("ended")
	cmd := w.talk(dir, w.shell("I read the bill.", "cat bill.txt"), modelapi.Turn{Text: "It lacks a heron."})
	require.NoError(t, cmd.Wait())
	id := w.session(dir)
	require.Contains(t, w.command(dir, "starter", "adopt"), "ended after an answer")
	w.damageLine(w.original(id), map[string]string{"claude": `"session_context"`, "codex": `"world_state"`}[w.cli.Name])
	f, err := os.OpenFile(w.original(id), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("\x00\x00 damaged\n{\"type\":\"assis")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, first := w.adopt(dir, "sub", id)
	require.Contains(t, first, "It lacks a heron.")
	require.Contains(t, first, "3 lines of the conversation could not be read")

	require.NoError(t, os.WriteFile(w.original(id), []byte("{\"type\":\"assis\n\x00\x00\n"), 0o600))
	out, code := w.execute(w.repository("damaged"), "starter", "adopt", "--session", id)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "damaged")
}

// damageLine overwrites a line in the middle of a file.
func (w *terminal) damageLine(file, part string) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(w.t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	at := slices.IndexFunc(lines, func(line []byte) bool { return bytes.Contains(line, []byte(part)) })
	require.Positive(w.t, at, "%s", text)
	lines[at] = []byte("\x00\x00\n")
	require.NoError(w.t, os.WriteFile(file, bytes.Join(lines, nil), 0o600))
}

// limited: the conversation met a usage limit. The command is typed before the reset.
func (w *terminal) limited() {
	t, dir, seconds := w.t, w.repository("limited"), untilReset[w.cli.Name]
	cmd := w.talk(dir, w.shell("I read the bill.", "cat bill.txt"),
		modelapi.Turn{Fault: modelapi.Fault{Kind: modelapi.FaultPlan, After: seconds}, Times: modelapi.Always})
	met := time.Now()
	_ = cmd.Wait()
	require.Contains(t, w.command(dir, "starter", "adopt"), "met a usage limit, which resets at ")
	home := sessions.Program{Name: w.cli.Name, Environ: []string{"HOME=" + filepath.Join(w.root, "home")}}
	at, err := home.Find(w.session(dir))
	require.NoError(t, err)
	require.Equal(t, run.EndedByLimit, at.Ended)
	require.WithinRange(t, at.Limit.Until, met, met.Add(2*time.Duration(seconds)*time.Second))
	asked := len(w.api.Log())
	dirOfRun, _ := w.adopt(dir, "", at.ID, "--when-limited")
	require.Greater(t, w.api.Log()[asked].Time, at.Limit.Until)
	log, err := os.ReadFile(filepath.Join(dirOfRun, "events.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(log), `"run.limited"`)
}
