package agent

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/supervisor"
)

// The test binary, started again with this variable, is the agent.
const playing = "AGENT_TEST_PLAYS"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		// At once: os.Exit of a program with the race detector waits a second.
		syscall.Exit(supervisor.Main(os.Args[2:]))
	}
	play, ok := os.LookupEnv(playing)
	if !ok {
		os.Exit(m.Run())
	}
	roles := map[string]func(arg string){
		"say": say, "env": env, "exit": exit, "echo": echo, "stubborn": stubborn, "leave": leave, "emigrate": emigrate,
		"wait": wait, "worker": worker, "await": await, "flood": flood,
	}
	role, arg, _ := strings.Cut(play, " ")
	roles[role](arg)
	syscall.Exit(0)
}

// say prints arg bytes in one go and exits at once, as Node does.
func say(arg string) {
	n, _ := strconv.Atoi(arg)
	fmt.Print(strings.Repeat("x", n))
}

func env(string) {
	dir, _ := os.Getwd()
	fmt.Println("cwd=" + dir)
	fmt.Println(strings.Join(os.Environ(), "\n"))
}

func exit(arg string) {
	code, _ := strconv.Atoi(arg)
	fmt.Fprintln(os.Stderr, "went wrong")
	syscall.Exit(code)
}

func echo(string) {
	data, _ := os.ReadFile("/dev/stdin")
	os.Stdout.Write(data)
}

// stubborn ignores SIGTERM, and so does its child.
func stubborn(string) {
	signal.Ignore(syscall.SIGTERM)
	grandchild()
	wait("")
}

// leave answers and exits while its child continues.
func leave(string) {
	grandchild()
}

// emigrate answers and exits while its child continues in its own session, without the mark.
func emigrate(string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), playing+"=wait", MarkEnv+"="), &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(os.Getpid(), cmd.Process.Pid)
}

// grandchild prints this process's and the grandchild's pid.
func grandchild() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playing+"=wait")
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(os.Getpid(), cmd.Process.Pid)
}

// flood prints without end.
func flood(string) {
	line := strings.Repeat("x", 1<<16)
	for {
		if _, err := fmt.Print(line); err != nil {
			return
		}
		time.Sleep(time.Millisecond) // the disk has other users
	}
}

func wait(string) { time.Sleep(time.Hour) }

// begin starts a call under this binary as its supervisor.
func begin(c Command) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := supervisor.Start([]string{self, supervisor.Verb}, c.Dir, nil)
	if err != nil {
		return nil, err
	}
	return Start(p, c)
}

// await prints its pid, and answers when the file go exists.
func await(string) {
	fmt.Println(os.Getpid(), os.Getppid())
	for {
		if _, err := os.Stat("go"); err == nil {
			fmt.Println("answered")
			return
		}
		time.Sleep(5 * time.Millisecond) // the agent polls, not the test
	}
}

// worker is a process that has a child through this package, and is killed by the test.
func worker(dir string) {
	child, err := begin(commandIn(dir, "await"))
	if err != nil {
		panic(err)
	}
	<-child.Done()
}

// commandIn is a call of the test binary in one of its roles; dir is its scratch and holds its files.
func commandIn(dir, play string) Command {
	prompt := filepath.Join(dir, "prompt.md")
	if _, err := os.Stat(prompt); err != nil {
		if err := os.WriteFile(prompt, []byte("do it"), 0o600); err != nil {
			panic(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Command{
		Argv: []string{self}, Dir: dir, Prompt: prompt, Stdout: filepath.Join(dir, "stdout"),
		Stderr:   filepath.Join(dir, "stderr"),
		ExtraEnv: map[string]string{playing: play},
	}
}
