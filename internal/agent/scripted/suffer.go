package scripted

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// suffer applies a fault.
func (a *actor) suffer(f Fault) int {
	switch f.Do {
	case "exit":
		fmt.Fprintln(a.stderr, f.Stderr)
		return max(1, f.Code)
	case "rate_limit":
		fmt.Fprintln(a.stderr, "API Error: 429 rate limit exceeded, try again later")
		return exitFailed
	case "hang":
		return a.hang()
	case "slow":
		return a.ponder(time.Duration(f.Seconds*float64(time.Second)), f.Until)
	case "empty":
		return exitOK
	case "kill_engine":
		return a.killEngine(f.When)
	case "no_html":
		return a.answer(request{noHTML: true})
	case "no_sections":
		return a.answer(request{noSections: true})
	case "no_markers":
		return a.answer(request{noMarkers: true})
	case "width":
		return a.answer(request{width: cmp.Or(f.Width, 800)})
	}
	return a.garble(f)
}

// ponder answers after a while, or once the file exists. A worker has done half of its edits by then.
func (a *actor) ponder(d time.Duration, until string) int {
	if a.call.role == "worker" {
		return a.answer(request{slow: d})
	}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(10*time.Millisecond, time.Until(end))) {
		if _, err := os.Stat(until); err == nil { // never, if no file is named
			break
		}
	}
	return a.answer(request{})
}

// garble spoils a reply that is otherwise right.
func (a *actor) garble(f Fault) int {
	text, err := a.call.reply(request{})
	if err != nil {
		return a.fail(err)
	}
	switch f.Do {
	case "say":
		text = f.Text
	case "truncate":
		text = cut(text)
	case "big":
		text += "\n" + strings.Repeat("This text continues. ", max(0, f.Bytes-len(text)-1)/21)
		text += strings.Repeat(".", max(0, f.Bytes-len(text)))
	}
	e := newEnvelope(a.prompt, text)
	switch f.Do {
	case "is_error":
		e.IsError, e.Result = true, cmp.Or(f.Text, "API Error: something went wrong")
	case "bad_json":
		return a.printHalf(e)
	}
	return a.print(e)
}

// cut ends a page in its middle, as a model does that ran out of tokens; without a page, the text.
func cut(text string) string {
	if page, _, ok := strings.Cut(text, "</html>"); ok {
		text = page
	}
	return strings.ToValidUTF8(text[:len(text)*2/3], "")
}

func (a *actor) printHalf(e envelope) int {
	data, err := e.bytes()
	if err == nil {
		_, err = a.stdout.Write(data[:len(data)/2])
	}
	if err != nil {
		return a.fail(err)
	}
	return exitOK
}

// hang never answers, ignores SIGTERM, and has a child that does the same.
func (a *actor) hang() int {
	signal.Ignore(syscall.SIGTERM)
	child := exec.Command("sleep", "3600")
	if err := child.Start(); err != nil {
		return a.fail(err)
	}
	if err := child.Wait(); err != nil {
		return a.fail(err)
	}
	return exitFailed
}

// killEngine kills the worker that asked for this call and the supervisor of the call, before or after answering:
// as if the machine had stopped.
func (a *actor) killEngine(when string) int {
	if when == "after" {
		if code := a.answer(request{}); code != exitOK {
			return code
		}
	}
	victims := []int{os.Getppid()}
	if supervises(victims[0]) {
		victims = []int{parentOf(victims[0]), victims[0]} // this process ends with the second one
	}
	for _, pid := range victims {
		if pid <= 1 {
			return a.fail(fmt.Errorf("kill the engine: it has ended (parent is %d)", pid))
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return a.fail(fmt.Errorf("kill the engine: %w", err))
		}
	}
	if when == "after" {
		return exitOK
	}
	return exitFailed
}

// supervises reports whether a process is the supervisor of a call.
func supervises(pid int) bool {
	command := ps(pid, "command")
	return strings.Contains(command, "passbook-call") || strings.Contains(command, "supervise-call")
}

func parentOf(pid int) int {
	above, err := strconv.Atoi(ps(pid, "ppid"))
	if err != nil {
		return 0
	}
	return above
}

// ps is one column of the process table. Where /proc shows it, no program is needed.
func ps(pid int, column string) string {
	switch raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); {
	case err != nil:
	case column == "ppid":
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		return fields[1]
	default:
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return "" // it has ended
		}
		return strings.ReplaceAll(string(raw), "\x00", " ")
	}
	out, err := exec.Command("ps", "-o", column+"=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
