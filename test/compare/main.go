// Command compare compares Passbook with a shell loop and with the loop runner ralphy-cli from npm: what a killed worker, a
// reboot, a usage limit, a false "done" and two runs at once cost. It prints the table of docs/costs-and-comparison.md.
//
// A scripted agent works for minutes of a clock that a model API on loopback moves. The real Claude Code repeats one
// situation. It writes only to a temporary folder, and ends every process that it starts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// harness has what all situations share.
type harness struct {
	dir, root, server string
	claude            string // the real one; empty: it is not installed
	ralphy            string
	only              string
}

// cell is what a tool did in a situation.
type cell struct {
	Calls   int    // paid
	Lost    string // time
	Wrong   int    // deliveries, and edits of the operator that were taken
	Remarks []string
}

func (r cell) String() string {
	return strings.Join(append([]string{fmt.Sprintf("%d paid, %s, %d wrong", r.Calls, r.Lost, r.Wrong)}, r.Remarks...), "; ")
}

func compare(ctx context.Context, args []string) (err error) {
	h := harness{}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.StringVar(&h.only, "only", "", "a part of the names of situations and tools")
	flags.StringVar(&h.ralphy, "ralphy", "", "the program of ralphy-cli; by default it is installed with npm")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if h.root, err = os.Getwd(); err != nil {
		return err
	}
	if h.dir, err = os.MkdirTemp("", "compare-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(h.dir)) }()
	if err := h.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("%s; ralphy-cli %s; Claude Code %s, scripted and, in the last row, real; %s\n\n", time.Now().UTC().Format(
		time.DateOnly), ralphyVersion, claudeVersion, machine())
	fmt.Println("| situation | Passbook | shell loop | ralphy-cli |\n|---|---|---|---|")
	for _, s := range situations {
		if strings.Contains(s.name, "real") && h.claude == "" {
			fmt.Fprintln(os.Stderr, "compare: Claude Code is not installed: make agents")
			continue
		}
		row := "| " + s.name + " |"
		for i, t := range h.tools(s) {
			if !strings.Contains(s.name+": "+t.name(), h.only) || s.loopOnly && i != 1 {
				row += " |"
				continue
			}
			begun := time.Now()
			r, err := h.try(ctx, s, t)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, t.name(), err)
			}
			fmt.Fprintf(os.Stderr, "%s: %s: %s (%.0f s)\n", s.name, t.name(), r, time.Since(begun).Seconds())
			row += " " + r.String() + " |"
		}
		fmt.Println(row)
	}
	return nil
}

// tools are the columns.
func (h *harness) tools(s situation) []tool {
	return []tool{&passbook{programs: filepath.Join(h.dir, "bin")}, &loop{worktrees: s.loopOnly}, &ralphy{program: h.ralphy}}
}

// situation is a row.
type situation struct {
	name     string
	tasks    []string
	test     string // test.sh
	reply    func(prompt string) work
	atOnce   bool
	loopOnly bool // of the shell loop, with a worktree for each task
	happens  func(e *env, t tool, r *cell) error
}

const (
	oneTask   = "Write a.done"
	doneTest  = "ls *.done >/dev/null 2>&1\n"
	fortyMins = 40
	steps     = 20
)

// situations are the rows of the table.
var situations = []situation{
	{name: "worker killed at minute 39 of 40", tasks: []string{oneTask}, test: doneTest, reply: writes(fortyMins),
		happens: killed((*env).killDriver, tool.restart)},
	{name: "machine rebooted at minute 39 of 40", tasks: []string{oneTask}, test: doneTest, reply: writes(fortyMins),
		happens: killed(func(e *env, _ tool) error { return e.killAll() }, tool.start)},
	{name: "usage limit at 3 a.m., reset at 5, operator back at 8", tasks: []string{oneTask}, test: doneTest,
		reply: writes(1), happens: limit},
	{name: `"done", and the tests pass only in the agent's folder`, tasks: []string{oneTask},
		test: "cat a.done build/a.done 2>/dev/null | grep -q .\n", reply: ignored, happens: untilDone(1)},
	{name: "two runs at once beside an edit of the operator", tasks: []string{oneTask, "Write b.done"}, test: doneTest,
		reply: writes(10), atOnce: true, happens: untilDone(10)},
	{name: "the same, each loop in a git worktree", tasks: []string{oneTask, "Write b.done"}, test: doneTest,
		reply: writes(10), atOnce: true, loopOnly: true, happens: untilDone(10)},
	{name: "one of 20 calls that are answered at once", tasks: []string{oneTask},
		test: fmt.Sprintf("test $(ls *.done *.step 2>/dev/null | wc -l) -ge %d\n", steps), reply: inSteps, happens: eachStep},
	{name: "worker killed in a request of the real Claude Code", tasks: []string{oneTask}, test: doneTest, happens: realKilled},
}

var fileName = regexp.MustCompile(`Write (\w+\.done)`)

// fileOf is the file that a task is about.
func fileOf(task string) string {
	m := fileName.FindStringSubmatch(task)
	if m == nil {
		return "none"
	}
	return m[1]
}

// commits adds the commit that a prompt asks for.
func commits(prompt, script string) string {
	if strings.Contains(prompt, "Commit your changes") {
		script += " && git add -A && git commit -qm " + fileOf(prompt)
	}
	return script
}

// writes is an agent that does its task in a number of minutes.
func writes(minutes int) func(string) work {
	return func(prompt string) work {
		return work{minutes, commits(prompt, "echo done > "+fileOf(prompt))}
	}
}

// ignored is an agent that builds what git ignores, until it is shown that the tests fail in a fresh folder.
func ignored(prompt string) work {
	if strings.Contains(prompt, "Passes only in the workspace") {
		return writes(1)(prompt)
	}
	return work{1, commits(prompt, "mkdir -p build && echo done > build/a.done && echo work >> notes-of-agent")}
}

// inSteps is an agent that answers at once, and is done after 20 calls.
func inSteps(prompt string) work {
	return work{0, commits(prompt, "n=$(ls *.step 2>/dev/null | wc -l); echo > $n.step")}
}

// try makes one cell.
func (h *harness) try(ctx context.Context, s situation, t tool) (r cell, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 8*time.Minute, errors.New("no result within eight minutes"))
	defer cancel()
	e, err := h.open(ctx, s, t)
	if err != nil {
		return r, err
	}
	defer func() {
		e.ctx = context.WithoutCancel(ctx)
		err = errors.Join(err, e.killAll(), t.stop(e), os.RemoveAll(e.dir))
		e.model.Close()
	}()
	if err := s.happens(e, t, &r); err != nil {
		return r, err
	}
	if r.Calls == 0 {
		r.Calls, _, _ = e.model.counted()
	}
	for _, task := range s.tasks {
		wrong, err := e.wrong(t, task)
		if err != nil {
			return r, err
		}
		if wrong != "" {
			r.Wrong++
			r.Remarks = append(r.Remarks, wrong)
		}
	}
	if notes, err := e.output(e.repo, "git", "status", "--porcelain", "notes.txt"); err != nil || s.atOnce && notes != "M notes.txt" {
		r.Wrong++
		r.Remarks = append(r.Remarks, "the operator's edit is committed")
		return r, err
	}
	return r, nil
}

// open makes the repository of a situation, with a commit and what the tool has there.
func (h *harness) open(ctx context.Context, s situation, t tool) (*env, error) {
	dir, err := os.MkdirTemp(h.dir, "try-")
	if err != nil {
		return nil, err
	}
	e := &env{ctx: ctx, dir: dir, repo: filepath.Join(dir, "app"), tasks: s.tasks, atOnce: s.atOnce, model: newModel(s.reply)}
	home, bin := filepath.Join(dir, "home"), filepath.Join(h.dir, "bin")
	e.environ = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + e.model.URL,
		"ANTHROPIC_API_KEY=sk-test", "PASSBOOK_STATE_DIR=" + filepath.Join(dir, "state"), "PASSBOOK_SERVER=" + h.server,
		"XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "IS_SANDBOX=1", "CI=1", "LANG=C.UTF-8"}
	for name, text := range map[string]string{
		"app/test.sh": s.test, "app/notes.txt": "notes\n", "app/.gitignore": "build/\n.ralphy/progress.txt\n",
		"home/.gitconfig":            "[user]\nname = A\nemail = a@localhost\n[init]\ndefaultBranch = main\n",
		"home/.claude/settings.json": "{}\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	commit := func(commands string) error { return e.run(e.repo, "sh", "-c", commands) }
	if err := commit("git init -q && git add -A && git commit -qm base"); err != nil {
		return nil, err
	}
	if err := errors.Join(t.setup(e), commit("git add -A && git commit -q --allow-empty -m configuration")); err != nil {
		return nil, err
	}
	if s.atOnce {
		if err := os.WriteFile(filepath.Join(e.repo, "notes.txt"), []byte("half an edit\n"), 0o600); err != nil {
			return nil, err
		}
	}
	e.base, err = e.output(e.repo, "git", "rev-parse", "HEAD")
	return e, err
}

// wrong checks a delivery in a fresh clone: its tests pass there, and it changes only what its task is about.
func (e *env) wrong(t tool, task string) (string, error) {
	commits, err := t.done(e, task)
	if err != nil || commits == "" {
		return "", err
	}
	_, commit, _ := strings.Cut(commits, "..")
	clone := filepath.Join(e.dir, "clone-"+fileOf(task))
	changed, err := e.output(e.repo, "git", "diff", "--name-only", commits)
	if err := errors.Join(err, e.run(e.dir, "git", "clone", "-q", e.repo, clone), e.run(e.repo, "git", "push", "-q", clone,
		commit+":refs/heads/delivered"), e.run(clone, "git", "checkout", "-q", "delivered")); err != nil {
		return "", err
	}
	if e.command(clone, "sh", "test.sh").Run() != nil {
		return "the tests fail in a clone", nil
	}
	own := []string{"tasks.yaml", ".ralphy/", "passbook/", fileOf(task), "notes-of-agent"}
	for path := range strings.FieldsSeq(changed) {
		shared := strings.HasSuffix(path, ".step") || strings.HasSuffix(path, ".done") && strings.HasSuffix(commits, "..HEAD")
		if !shared && !slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(path, p) }) {
			return "it contains " + path, nil
		}
	}
	return "", nil
}

func (e *env) killDriver(t tool) error {
	pid := t.driver(e)
	if err := syscall.Kill(pid, syscall.SIGKILL); pid == 0 || err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return e.await("the end of the worker", func() bool { return gone(pid) })
}

// gone reports whether a process has ended, also if its parent has not waited for it.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// work moves the clock until the tool has ended.
func (e *env) work(t tool) error {
	for !t.ended(e) {
		if e.ctx.Err() != nil {
			return context.Cause(e.ctx)
		}
		e.model.move()
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// killed kills at minute 39 and counts the time that is worked twice.
func killed(kill func(*env, tool) error, again func(tool, *env) error) func(*env, tool, *cell) error {
	return func(e *env, t tool, r *cell) error {
		if err := t.start(e); err != nil {
			return err
		}
		for range fortyMins - 1 {
			if err := e.await("a call", func() bool { _, _, n := e.model.counted(); return n > 0 }); err != nil {
				return err
			}
			e.model.move()
		}
		if err := e.await("minute 39", func() bool { _, now, n := e.model.counted(); return now == fortyMins-1 && n > 0 }); err != nil {
			return err
		}
		if err := errors.Join(kill(e, t), again(t, e)); err != nil {
			return err
		}
		for wait := time.Now(); time.Since(wait) < 15*time.Second; time.Sleep(20 * time.Millisecond) {
			if calls, _, _ := e.model.counted(); calls > 1 || t.ended(e) {
				break
			}
		}
		err := e.work(t)
		_, now, _ := e.model.counted()
		r.Lost = fmt.Sprintf("%d min lost", now-fortyMins)
		return err
	}
}

// limit has a limit of 20 seconds in the place of two hours; what a tool waits after it is not shortened.
func limit(e *env, t tool, r *cell) error {
	e.model.resets = time.Now().Add(20 * time.Second)
	if err := t.start(e); err != nil {
		return err
	}
	err := e.work(t)
	e.model.mu.Lock()
	defer e.model.mu.Unlock()
	r.Remarks = append(r.Remarks, fmt.Sprintf("%d refused", e.model.refused))
	if len(e.model.begun) == 0 {
		r.Lost = "180 min lost"
		r.Remarks = append(r.Remarks, "it stops at the limit")
	} else {
		r.Lost = fmt.Sprintf("%.1f min lost", e.model.begun[0].Sub(e.model.resets).Minutes())
	}
	return err
}

func untilDone(minutes int) func(*env, tool, *cell) error {
	return func(e *env, t tool, r *cell) error {
		err := t.start(e)
		if err == nil {
			err = e.await("a call of each", func() bool { _, _, n := e.model.counted(); return n == len(e.tasks) || t.ended(e) })
		}
		err = errors.Join(err, e.work(t))
		_, now, _ := e.model.counted()
		r.Lost = fmt.Sprintf("%d min lost", now-minutes)
		return err
	}
}

// eachStep measures the time from call to call.
func eachStep(e *env, t tool, r *cell) error {
	if p, is := t.(*ralphy); is { // a task for each call
		e.tasks = nil
		for i := range steps {
			e.tasks = append(e.tasks, fmt.Sprintf("%s %d", oneTask, i))
		}
		if err := p.setup(e); err != nil {
			return err
		}
	}
	err := errors.Join(t.start(e), e.work(t))
	if n := len(e.model.begun); n > 1 {
		r.Lost = fmt.Sprintf("%.0f ms each", float64(e.model.begun[n-1].Sub(e.model.begun[0]).Milliseconds())/float64(n-1))
	}
	return err
}

// install runs a command of the machine.
func install(ctx context.Context, dir string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
