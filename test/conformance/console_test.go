package conformance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages are kept from rotting by two kinds of blocks, in README.md and docs/*.md:
//
//	```console test       each line after "$ " is run by a shell; the lines below it must stand in what it prints, in this order. A line
//	                      "..." stands for any, and "[exit 3]" says how the command ends.
//	```yaml file=a/b.yaml the block is written to that file first; `text file=` does the same.
//
// The commands of a page run one after the other in an empty folder with the examples, in which bin/starter is the
// program.
var (
	consoleBlock = regexp.MustCompile("(?ms)^```console test\n(.*?)^```$")
	fileBlock    = regexp.MustCompile("(?ms)^```\\w+ file=(\\S+)\n(.*?)^```$")
	commandLine  = regexp.MustCompile(`(?m)^\$ `)
	exitLine     = regexp.MustCompile(`^\[exit (\d+)\]$`)
)

// TestPagesMatchTheRun runs what the pages show.
func TestPagesMatchTheRun(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(project, "docs", "*.md"))
	require.NoError(t, err)
	tried := 0
	for _, page := range append(pages, filepath.Join(project, "README.md"),
		filepath.Join(project, "examples", "README.md")) {
		text := string(read(t, page))
		blocks := consoleBlock.FindAllStringSubmatch(text, -1)
		if len(blocks) == 0 {
			continue
		}
		tried++
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			follow(t, text, blocks)
		})
	}
	require.NotZero(t, tried, "no page has a block that is tested")
}

func follow(t *testing.T, text string, blocks [][]string) {
	dir := t.TempDir()
	e := borrowEnv(t)
	// for pages that start one of their own
	_, server, _ := strings.Cut(strings.TrimSpace(e.starter(t, "server", "build")), ": ")
	vars := append(e.vars(), "PASSBOOK_SERVER="+server, "PASSBOOK_RUN_ROOT="+filepath.Join(dir, "runs"))
	t.Cleanup(func() {
		own := &env{dir: dir} // the one that a page starts, if the page failed before it stopped it
		require.NoError(t, errors.Join(own.create(), own.stop()))
	})
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(project, "examples"))))
	require.NoError(t, os.Symlink(filepath.Join(base, "bin"), filepath.Join(dir, "bin")))
	for _, m := range fileBlock.FindAllStringSubmatch(text, -1) {
		name := filepath.Join(dir, filepath.FromSlash(m[1]))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(m[2]), 0o600))
	}
	for _, block := range blocks {
		for _, part := range commandLine.Split(block[1], -1)[1:] {
			command, want, _ := strings.Cut(part, "\n")
			require.NoError(t, say(t, dir, vars, command, strings.Split(strings.TrimSpace(want), "\n")))
		}
	}
}

// say runs one command and compares what it prints with what the page shows.
func say(t *testing.T, dir string, vars []string, command string, want []string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = dir, vars
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
			return fmt.Errorf("$ %s\nthe page shows %q, which is not printed there:\n%s", command, line, out)
		}
		rest = after
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		return fmt.Errorf("$ %s\nends with %d, the page says %d:\n%s", command, got, code, out)
	}
	return nil
}
