package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tool is what drives the agent, configured as its documentation advises.
type tool interface {
	name() string
	// setup adds what the tool has in a repository; the harness commits it.
	setup(e *env) error
	// start starts the work on the tasks. After a death of the machine it is called again.
	start(e *env) error
	// driver is the process whose death is tried, and restart what starts it again.
	driver(e *env) int
	restart(e *env) error
	// ended reports whether nothing works any longer.
	ended(e *env) bool
	// done returns what the tool delivers for a task that it shows as done: commits, as git names a range; empty: it is not.
	done(e *env, task string) (string, error)
	stop(e *env) error
}

// processes are those of a tool that has one for each start.
type processes struct{ all []*exec.Cmd }

func (p *processes) add(e *env, dir string, argv ...string) error {
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := e.command(dir, argv...)
	cmd.Stdout, cmd.Stderr = log, log
	p.all = append(p.all, cmd)
	return errors.Join(cmd.Start(), log.Close())
}

func (p *processes) ended(*env) bool {
	return !slices.ContainsFunc(p.all, func(cmd *exec.Cmd) bool { return !gone(cmd.Process.Pid) })
}

// driver is the newest process.
func (p *processes) driver(*env) int { return p.all[len(p.all)-1].Process.Pid }

func (*processes) stop(*env) error { return nil }

//go:embed loop.sh
var loopScript string

// loop is a shell loop for each task. With worktrees each has a worktree and a branch.
type loop struct {
	processes
	worktrees bool
}

func (*loop) name() string     { return "shell loop" }
func (*loop) setup(*env) error { return nil }
func (l *loop) start(e *env) error {
	script := filepath.Join(e.dir, "loop.sh")
	if err := os.WriteFile(script, []byte(loopScript), 0o600); err != nil {
		return err
	}
	for i, task := range e.tasks {
		prompt := filepath.Join(e.dir, fmt.Sprintf("prompt-%d.md", i))
		if err := os.WriteFile(prompt, []byte(task+"\n"), 0o600); err != nil {
			return err
		}
		dir := e.repo
		if l.worktrees {
			dir = fmt.Sprintf("%s-%d", e.repo, i)
			if err := e.run(e.repo, "git", "worktree", "add", "-q", "-b", branchOf(task), dir); err != nil {
				return err
			}
		}
		if err := l.add(e, dir, "sh", script, prompt); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) restart(e *env) error { return l.start(e) }

func branchOf(task string) string { return "loop/" + strings.TrimSuffix(fileOf(task), ".done") }

// done: the loop has committed under the text of its prompt.
func (l *loop) done(e *env, task string) (string, error) {
	out, err := e.output(e.repo, "git", "log", "--all", "--format=%H^..%H", "--grep="+task, "--not", e.base)
	return out, err
}

// ralphy is the loop runner ralphy-cli from npm, with a list of tasks.
type ralphy struct {
	processes
	program string
}

func (*ralphy) name() string { return "ralphy-cli" }

func (r *ralphy) setup(e *env) error {
	list := "tasks:\n"
	for _, task := range e.tasks {
		list += "  - {title: " + task + ", completed: false, parallel_group: 1}\n"
	}
	if err := os.WriteFile(filepath.Join(e.repo, "tasks.yaml"), []byte(list), 0o600); err != nil {
		return err
	}
	if err := e.run(e.repo, r.program, "--init"); err != nil {
		return err
	}
	return e.run(e.repo, "sed", "-i", `s/test: ""/test: "sh test.sh"/`, ".ralphy/config.yaml")
}

func (r *ralphy) start(e *env) error {
	argv := []string{r.program, "--yaml", "tasks.yaml"}
	if e.atOnce {
		argv = append(argv, "--parallel")
	}
	return r.add(e, e.repo, argv...)
}

func (r *ralphy) restart(e *env) error { return r.start(e) }

// done: the list of tasks in the checkout records it.
func (*ralphy) done(e *env, task string) (string, error) {
	list, err := os.ReadFile(filepath.Join(e.repo, "tasks.yaml"))
	if strings.Contains(strings.Join(strings.Fields(string(list)), " "), "title: "+task+" completed: true") {
		return e.base + "..HEAD", err
	}
	return "", err
}

// passbook has the pipeline of `starter init turns`.
type passbook struct{ programs string }

func (*passbook) name() string { return "Passbook" }

func (p *passbook) starter(e *env, args ...string) error {
	return e.run(e.repo, append([]string{filepath.Join(p.programs, "starter")}, args...)...)
}

func (p *passbook) setup(e *env) error {
	return p.starter(e, "init", "turns", "--yes", "--agent", "claude", "--test", "sh test.sh")
}

func (*passbook) runDir(e *env, task string) string {
	return filepath.Join(e.dir, "runs", fileOf(task))
}

func (p *passbook) start(e *env) error {
	if len(e.begun) > 0 { // the machine has died: the line of cron
		return p.starter(e, "server", "start")
	}
	for _, task := range e.tasks {
		args := []string{"run", "turns", task, "--output-dir", p.runDir(e, task), "--detach"}
		if e.atOnce { // beside an edit of the operator
			args = append(args, "--dirty", "exclude")
		}
		if err := p.starter(e, args...); err != nil {
			return err
		}
		e.begun = append(e.begun, task)
	}
	return nil
}

// driver is the worker; 0: none runs.
func (p *passbook) driver(e *env) int {
	var s struct {
		Worker struct{ Process struct{ PID int } }
	}
	out, err := e.output(e.repo, filepath.Join(p.programs, "starter"), "server", "status", "--json")
	if err != nil || json.Unmarshal([]byte(out), &s) != nil {
		return 0
	}
	return s.Worker.Process.PID
}

// restart waits for what the keeper does.
func (p *passbook) restart(e *env) error {
	return e.await("a new worker", func() bool { return p.driver(e) != 0 })
}

func (p *passbook) status(e *env, task string) (status, branch string, err error) {
	var meta struct {
		Status    string
		Workspace struct{ Branch string }
	}
	raw, err := os.ReadFile(filepath.Join(p.runDir(e, task), "meta.json"))
	if err == nil {
		err = json.Unmarshal(raw, &meta)
	}
	return meta.Status, meta.Workspace.Branch, err
}

func (p *passbook) ended(e *env) bool {
	for _, task := range e.tasks {
		status, _, err := p.status(e, task)
		if err != nil || status == "pending" || status == "running" || status == "waiting_limit" {
			return false
		}
	}
	return true
}

func (p *passbook) done(e *env, task string) (string, error) {
	status, branch, err := p.status(e, task)
	if status != "done" {
		return "", err
	}
	return e.base + ".." + branch, err
}

func (p *passbook) stop(e *env) error { return p.starter(e, "server", "stop", "--now") }

// env is a repository, a home and a model for one tool in one situation.
type env struct {
	ctx     context.Context
	dir     string
	repo    string
	base    string // the commit before the work
	tasks   []string
	atOnce  bool // the tasks are worked on at the same time
	begun   []string
	model   *model
	environ []string
}

func (e *env) command(dir string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(e.ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, e.environ
	return cmd
}

func (e *env) output(dir string, argv ...string) (string, error) {
	cmd := e.command(dir, argv...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return strings.TrimSpace(string(out)), err
}

func (e *env) run(dir string, argv ...string) error {
	_, err := e.output(dir, argv...)
	return err
}

// await waits for a condition.
func (e *env) await(what string, met func() bool) error {
	for late := time.Now().Add(2 * time.Minute); !met(); time.Sleep(20 * time.Millisecond) {
		if e.ctx.Err() != nil {
			return context.Cause(e.ctx)
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s did not come within two minutes", what)
		}
	}
	return nil
}

// processes are those of the tool and of its agents.
func (e *env) processes() (found []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() || gone(pid) {
			continue
		}
		environ, err := os.ReadFile("/proc/" + p.Name() + "/environ")
		args, err2 := os.ReadFile("/proc/" + p.Name() + "/cmdline")
		if err == nil && err2 == nil && strings.Contains(string(environ)+string(args), e.dir+"/") {
			found = append(found, pid)
		}
	}
	return found
}

// killAll ends all processes, as a loss of power does.
func (e *env) killAll() error {
	return e.await("the end of all processes", func() bool {
		found := e.processes()
		for _, pid := range found {
			if err := syscall.Kill(pid, syscall.SIGKILL); errors.Is(err, syscall.EPERM) {
				return false
			}
		}
		return len(found) == 0
	})
}
