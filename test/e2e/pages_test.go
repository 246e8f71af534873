package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every command block of a page is run, in the order of the page, in a folder with the examples and bin/:
//
//	```console test       each line after "$ " is run by a shell; the lines below it must stand in what it prints, in
//	                      this order. A line "..." stands for any, and "[exit 3]" is the exit code.
//	```sh                 a row of shellBlocks has what it is run with, or why it is not run.
//	```yaml file=a/b.yaml the block is written to that file first; `text file=` does the same.
//
// TestDocsNameCommandsThatExist of internal/cli parses also the commands that are not run.
var (
	fence       = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	commandLine = regexp.MustCompile(`(?m)^\$ `)
	exitLine    = regexp.MustCompile(`^\[exit (\d+)\]$`)
)

// pageBlock is a fenced block of a page.
type pageBlock struct {
	kind, text string
	row        *shellBlock // how it is run
}

// blocksOf lists the blocks of a page. A block that looks like a command and has no row in the table is an error, and
// so is a row without a block.
func blocksOf(page, text string, table []shellBlock) (blocks []pageBlock, err error) {
	var used []string
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		b := pageBlock{kind: m[1], text: m[2]}
		first, _, _ := strings.Cut(b.text, "\n")
		switch b.kind {
		case "", "sh", "bash", "console", "shell":
			i := slices.IndexFunc(table, func(s shellBlock) bool {
				return s.page == page && strings.HasPrefix(first, s.begins)
			})
			if i < 0 {
				err = errors.Join(err, fmt.Errorf("%s: no row of shellBlocks runs the block %q", page, first))
				continue
			}
			b.row = &table[i]
			used = append(used, "the block %q", b.row.begins)
		}
		blocks = append(blocks, b)
	}
	for _, row := range table {
		if row.page == page && count(used, row.begins) != 1 {
			err = errors.Join(err, fmt.Errorf("%s: %d blocks begin with %q", page, count(used, row.begins), row.begins))
		}
	}
	return blocks, err
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// TestPagesMatchTheRun runs what the pages show.
func TestPagesMatchTheRun(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	folder := h.pageFolder()
	for _, page := range pagesWithBlocks(t) {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if dir := filepath.Dir(page); dir == "examples" {
			name = dir
		}
		blocks, err := blocksOf(page, string(read(t, filepath.Join(project, page))), shellBlocks)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) { followPage(t, h, filepath.Join(folder, name), blocks) })
	}
}

// pagesWithBlocks are the pages with commands.
func pagesWithBlocks(t *testing.T) (pages []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(project, "docs", "*.md"))
	require.NoError(t, err)
	for _, page := range append(all, filepath.Join(project, "README.md"),
		filepath.Join(project, "examples", "README.md")) {
		name, err := filepath.Rel(project, page)
		require.NoError(t, err)
		if regexp.MustCompile("(?m)^```(sh|bash|console.*|shell|)\n").Match(read(t, page)) {
			pages = append(pages, name)
		}
	}
	return pages
}

// pageFolder is a home with what the pages take for granted: a repository, a browser that opens nothing, the CLI of
// Temporal, and this checkout where the project is cloned from.
func (h *environment) pageFolder() string {
	h.t.Helper()
	write := func(name, text string) {
		path := h.dir(name)
		require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(h.t, os.WriteFile(path, []byte(text), 0o700))
	}
	cli, err := builtCLI()
	require.NoError(h.t, err)
	h.starter("server", "start")
	write("home/.gitconfig", fmt.Sprintf("[user]\nname = Test\nemail = test@localhost\n[safe]\ndirectory = *\n"+
		"[url %q]\ninsteadOf = https://github.com/passbook-run/passbook\n", "file://"+project))
	write("tools/temporal", "#!/bin/sh\nexec "+cli+" \"$@\"\n")
	for _, opener := range []string{"xdg-open", "open"} {
		write("tools/"+opener, "#!/bin/sh\ntest -e \"$1\"\n")
	}
	require.NoError(h.t, os.Symlink(filepath.Join(programs, "starter"), h.dir("tools/starter")))
	return h.dir("pages")
}

// followPage runs the blocks of one page.
func followPage(t *testing.T, h *environment, dir string, blocks []pageBlock) {
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(project, "examples"))))
	require.NoError(t, os.Symlink(programs, filepath.Join(dir, "bin")))
	require.NoError(t, os.Symlink(filepath.Join(project, "Makefile"), filepath.Join(dir, "Makefile")))
	server := strings.TrimSpace(h.starter("server", "build"))
	vars := append(slices.Clone(h.env), "PASSBOOK_RUN_ROOT="+filepath.Join(dir, "runs"), "HOME="+h.dir("home"),
		"PASSBOOK_SERVER="+server[strings.LastIndex(server, " ")+1:], // for pages that start another one
		"SERVER="+h.running().Server.Address, "PATH="+h.dir("tools")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() { // the one that a page starts, if the page failed before it stopped it
		if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
			cmd := exec.Command(filepath.Join(programs, "starter"), "server", "stop", "--now")
			cmd.Env = append(slices.Clone(vars), "PASSBOOK_STATE_DIR="+filepath.Join(dir, "state"))
			require.NoError(t, cmd.Run())
		}
	})
	for _, b := range blocks {
		if name, ok := b.file(); ok {
			path := filepath.Join(dir, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(b.text), 0o600))
		}
	}
	for _, b := range blocks {
		switch {
		case b.kind == "console test":
			for _, part := range commandLine.Split(b.text, -1)[1:] {
				command, want, _ := strings.Cut(part, "\n")
				require.NoError(t, say(t, dir, vars, command, strings.Split(strings.TrimSpace(want), "\n")), "$ %s",
					command)
			}
		case b.row != nil && b.row.notRun == "":
			script, err := b.row.script(b.text)
			require.NoError(t, err)
			require.NoError(t, say(t, dir, vars, script, b.row.want), "the block %q", b.row.begins)
		}
	}
}

// file is the name that the block is written to.
func (b pageBlock) file() (string, bool) {
	_, name, ok := strings.Cut(b.kind, " file=")
	return name, ok
}

// say runs a command and compares what it prints with what the page shows.
func say(t *testing.T, dir string, vars []string, command string, want []string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, vars, time.Second
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return err
	}
	code, rest := 0, string(out)
	for _, line := range want {
		if m := exitLine.FindStringSubmatch(line); m != nil {
			_, _ = fmt.Sscan(m[1], &code)
			continue
		}
		if line == "" || strings.TrimSpace(line) == "..." {
			continue
		}
		_, after, found := strings.Cut(rest, strings.TrimSpace(line))
		if !found {
			return fmt.Errorf("the page shows %q, which is not printed there:\n%s", line, out)
		}
		rest = after
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		return fmt.Errorf("it ends with %d, the page shows %d:\n%s", got, code, out)
	}
	return nil
}
