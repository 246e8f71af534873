package scripted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// planFile lists the edits of each turn to the files beside it.
const planFile = "PLAN.md"

var (
	turnHead   = lazyregexp.New(`(?m)^## Turn (\d+): (.+)$`)
	editLine   = lazyregexp.New("(?m)^(create|change|rename|delete) `([^`]+)`(?: to `([^`]+)`)?$")
	editFence  = lazyregexp.New("(?s)^\\n+```[a-z]*\\n(.*?)\\n?```\\n")
	statusLine = lazyregexp.New(`(?m)^STATUS: (done|more)$`)
)

// edit is one thing that a worker does to a file.
type edit struct {
	verb     string // create, change, rename or delete
	path, to string
	text     string
}

// turn is the plan of one round.
type turn struct {
	title string
	edits []edit
	done  bool // the worker reports that nothing is left
}

// work applies the plan's edits of this round in place. It is strict: a file to create must not exist, and one to
// change, rename or delete must exist. So leftovers of an earlier attempt are an error. A slow fault waits between
// the edits.
func (c call) work(r request) (string, error) {
	plan, err := os.ReadFile(planFile)
	if errors.Is(err, fs.ErrNotExist) {
		time.Sleep(r.slow)
		return "There is no plan, so nothing is left to do.\n\nSTATUS: done\n", nil
	}
	if err != nil {
		return "", err
	}
	t := planned(string(plan), c.round)
	var output strings.Builder
	fmt.Fprintf(&output, "# %s\n\n", t.title)
	for i, e := range t.edits {
		if i == len(t.edits)/2 {
			time.Sleep(r.slow)
		}
		if err := e.do(); err != nil {
			return "", fmt.Errorf("turn %d: %w", c.round, err)
		}
		fmt.Fprintf(&output, "- %s\n", e)
	}
	status := "more"
	if t.done {
		status = "done"
	}
	return fmt.Sprintf("%s\nSTATUS: %s\n", output.String(), status), nil
}

// planned reads one turn of a plan. After the last one everything is done.
func planned(plan string, n int) turn {
	heads := turnHead.FindAllStringSubmatchIndex(plan, -1)
	for i, h := range heads {
		if number(plan[h[2]:h[3]]) != n {
			continue
		}
		end := len(plan)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		return readTurn(plan[h[4]:h[5]], plan[h[1]:end], i+1 == len(heads))
	}
	return turn{title: "Nothing is left", done: true}
}

func readTurn(title, text string, last bool) turn {
	t := turn{title: title, done: last}
	outside := text
	for _, m := range editLine.FindAllStringSubmatchIndex(text, -1) {
		e := edit{verb: text[m[2]:m[3]], path: text[m[4]:m[5]]}
		if m[6] >= 0 {
			e.to = text[m[6]:m[7]]
		}
		if fence := editFence.FindStringSubmatch(text[m[1]:]); fence != nil {
			e.text = fence[1] + "\n"
			outside = strings.Replace(outside, fence[0], "", 1)
		}
		t.edits = append(t.edits, e)
	}
	if output := first(statusLine, outside); output != "" {
		t.done = output == "done"
	}
	return t
}

func (e edit) String() string {
	if e.to != "" {
		return fmt.Sprintf("%s %s to %s", e.verb, e.path, e.to)
	}
	return e.verb + " " + e.path
}

func (e edit) do() error {
	for _, path := range []string{e.path, e.to} {
		if path != "" && !filepath.IsLocal(path) {
			return fmt.Errorf("%s: it leads out of the working directory", e)
		}
	}
	_, err := os.Lstat(e.path)
	switch {
	case err == nil && e.verb == "create":
		return fmt.Errorf("%s: it is there already", e)
	case err != nil && e.verb != "create":
		return fmt.Errorf("%s: %w", e, err)
	case e.verb == "delete":
		return os.Remove(e.path)
	case e.verb == "rename":
		return e.rename()
	}
	return e.write()
}

// rename makes the folder that it goes to.
func (e edit) rename() error {
	if _, err := os.Lstat(e.to); err == nil {
		return fmt.Errorf("%s: it is there already", e)
	}
	if err := os.MkdirAll(filepath.Dir(e.to), 0o755); err != nil {
		return err
	}
	return os.Rename(e.path, e.to)
}

func (e edit) write() error {
	if err := os.MkdirAll(filepath.Dir(e.path), 0o755); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if strings.HasPrefix(e.text, "#!") {
		perm = 0o755
	}
	if err := os.WriteFile(e.path, []byte(e.text), perm); err != nil {
		return err
	}
	return os.Chmod(e.path, perm) // whatever the umask, the tree is the same
}
