package e2e_test

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/internal/local"
)

// panes are terminals in a tmux of their own: real ones, of a known size.
type panes struct {
	h      *environment
	socket string
}

func (h *environment) panes() panes {
	h.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		h.t.Skip("there is no tmux")
	}
	p := panes{h: h, socket: filepath.Join(h.root, "tmux")}
	// none is there if nothing was opened
	h.t.Cleanup(func() { _ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() })
	return p
}

func (p panes) tmux(args ...string) string {
	p.h.t.Helper()
	cmd := exec.CommandContext(p.h.t.Context(), "tmux", append([]string{"-S", p.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(p.h.env, "COLORTERM=truecolor", "TERM=xterm-256color", "LC_ALL=C.UTF-8",
		"STARTER="+filepath.Join(programs, "starter"))
	out, err := cmd.CombinedOutput()
	require.NoError(p.h.t, err, "tmux %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// open starts a shell command in a terminal of that size.
func (p panes) open(name string, width, height int, command string) {
	p.tmux("new-session", "-d", "-s", name, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
		command+"; echo; sleep 600")
}

func (p panes) press(name string, keys ...string) {
	p.tmux(append([]string{"send-keys", "-t", name}, keys...)...)
}

// sees waits until the terminal shows all of the texts at once.
func (p panes) sees(name string, texts ...string) {
	p.h.t.Helper()
	var shown string
	require.Eventually(p.h.t, func() bool {
		shown = p.tmux("capture-pane", "-p", "-t", name)
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return false
			}
		}
		return true
	}, 4*time.Minute, 100*time.Millisecond, "%s never shows %q", name, texts)
}

// matches waits until the terminal shows what the pattern matches.
func (p panes) matches(name, pattern string) {
	p.h.t.Helper()
	re := regexp.MustCompile(pattern)
	require.Eventually(p.h.t, func() bool { return re.MatchString(p.tmux("capture-pane", "-p", "-t", name)) },
		4*time.Minute, 100*time.Millisecond, "%s never shows %s", name, pattern)
}

// keep makes a picture of a terminal as it stands.
func (p panes) keep(name, picture string, light bool) {
	p.h.t.Helper()
	width, err := strconv.Atoi(strings.TrimSpace(p.tmux("display-message", "-p", "-t", name, "#{pane_width}")))
	require.NoError(p.h.t, err)
	page := pageOf(strings.TrimRight(p.tmux("capture-pane", "-e", "-p", "-t", name), "\n "), width, light)
	res, err := browser.Shoot(p.h.t.Context(), browser.Options{}, browser.Page{HTML: []byte(page), Name: picture},
		browser.Request{
			Sizes: []browser.Size{{W: width*9 + 40, H: 200}}, Kinds: []string{browser.Full},
		})
	require.NoError(p.h.t, err)
	require.NoError(p.h.t, os.WriteFile(filepath.Join(project, "docs", "images", picture+".png"), res.Shots[0].PNG,
		0o644))
}

// pageOf is a terminal's cells as a page.
func pageOf(cells string, width int, light bool) string {
	ink, paper := "#e6edf3", "#0d1117"
	if light {
		ink, paper = "#1f2328", "#ffffff"
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		`<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0;padding:16px 20px;background:%s;color:%s}pre{margin:0;font:15px/1.17 "DejaVu Sans Mono","Liberation Mono",monospace}
i{font-style:normal;display:inline-block;width:1ch;text-align:center}b{font-weight:bold}</style><pre style="width:%dch">`, paper, ink, width)
	style := "" // lasts from line to line
	for line := range strings.Lines(cells) {
		for _, part := range regexp.MustCompile("\x1b\\[[0-9;]*m|[^\x1b]+").FindAllString(line, -1) {
			if codes, is := strings.CutPrefix(part, "\x1b["); is {
				style = styled(style, strings.TrimSuffix(codes, "m"))
				continue
			}
			fmt.Fprintf(&b, `<span style="%s">%s</span>`, style, inCells(part))
		}
	}
	return b.String() + "</pre>"
}

// inCells gives signs that fonts draw wider than a cell the width of one.
func inCells(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x2000 || r >= 0x2500 && r < 0x25a0 {
			b.WriteString(html.EscapeString(string(r)))
		} else {
			fmt.Fprintf(&b, "<i>%c</i>", r)
		}
	}
	return b.String()
}

// styled is a style after the codes of an escape sequence.
func styled(style, codes string) string {
	all := strings.Split(codes, ";")
	for i := 0; i < len(all); i++ {
		switch code := all[i]; {
		case code == "" || code == "0":
			style = ""
		case code == "1":
			style += "font-weight:bold;"
		case code == "7":
			style += "filter:invert(1);"
		case code == "39":
			style += "color:inherit;"
		case code == "38" && i+4 < len(all) && all[i+1] == "2":
			style += fmt.Sprintf("color:rgb(%s,%s,%s);", all[i+2], all[i+3], all[i+4])
			i += 4
		case code == "38" && i+2 < len(all) && all[i+1] == "5":
			style += "color:" + indexed(all[i+2]) + ";"
			i += 2
		}
	}
	return style
}

// indexed is a colour of the palette of 256, as xterm has it.
func indexed(number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n < 16 {
		return "inherit"
	}
	if n >= 232 {
		grey := 8 + 10*(n-232)
		return fmt.Sprintf("rgb(%d,%d,%d)", grey, grey, grey)
	}
	level := func(i int) int {
		if i == 0 {
			return 0
		}
		return 55 + 40*i
	}
	n -= 16
	return fmt.Sprintf("rgb(%d,%d,%d)", level(n/36), level(n/6%6), level(n%6))
}

// TestTerminalPictures works a run at real terminals of 80 and 140 columns, with keys, and keeps what they show at the
// moments that the documentation tells of.
func TestTerminalPictures(t *testing.T) {
	if !*pictures {
		t.Skip("only with -pictures: it takes some minutes")
	}
	h := newEnv(t)
	p := h.panes()
	var faults strings.Builder
	for n := 1; n <= 56; n++ {
		took := "1.6"
		switch in := (n-1)%8 + 1; {
		case n == 35 || n == 38:
			took = "25"
		case in == 2 || in == 5 || in == 8:
			took = "0.8"
		}
		faults.WriteString(slow(strconv.Quote(strconv.Itoa(n)), took))
	}
	faults.WriteString(slow("weaver-1", "1") + slow("refine-1", "2") + slow("weaver-2", "1") + slow("refine-2", "14"))
	h.spoil(faults.String())
	dir, starter := h.dir("demo"), filepath.Join(programs, "starter")

	p.open("attached", 140, 40, starter+" demo --output-dir "+dir)
	p.sees("attached", "▶ running", "Pass 3/56")
	p.open("narrow", 80, 50, starter+" watch "+dir)
	p.sees("narrow", "▶ running")
	p.tmux("set-option", "-g", "window-style", "fg=#1f2328,bg=#ffffff")
	p.open("light", 140, 40, starter+" watch "+dir)
	for name, picture := range map[string]string{"attached": "watch-running-140", "narrow": "watch-running-80",
		"light": "watch-running-140-light"} {
		p.matches(name, `Pass 35/56 (?s:.*)\(([3-9]|1\d|2[0-3])s elapsed\)`)
		p.sees(name, "34/56 (61%)", "Pass 35/56", "Mechanisms → Rules", "...running...", "S5 ██░░░░░░ 2/8")
		p.keep(name, picture, name == "light")
	}

	h.starter("budget", dir, "--usd", "3")
	p.sees("narrow", "paused: budget-threshold", "Press b to raise it")
	p.sees("attached", "paused: budget-threshold")
	p.keep("narrow", "watch-paused-80", false)
	p.keep("attached", "watch-paused-140", false)
	p.press("narrow", "b")
	p.press("narrow", "6", "Enter")
	p.sees("narrow", "the budget is 6.00 USD")
	p.press("narrow", "r")
	p.press("narrow", "y")
	p.sees("narrow", "▶ running")

	for _, name := range []string{"narrow", "attached"} {
		p.sees(name, "2.5 → 3.0", "A: 2.5  B: 3.0  C: 3.5", "PA-05: 3.0/4", "Refine ▶", "56/56 (100%)")
	}
	p.keep("narrow", "watch-cycle-2-80", false)
	p.keep("attached", "watch-cycle-2-140", false)

	p.sees("attached", "Done: 56 of 56 passes, 3 cycles, 70 calls", "and try: ")
	p.sees("narrow", "✓ done", "56/56 passed", "3.0 → 3.5")
	p.tmux("set-option", "-g", "window-style", "default")
	p.open("wide", 140, 40, starter+" watch "+dir)
	p.sees("wide", "✓ done", "56/56 passed")
	p.keep("narrow", "watch-done-80", false)
	p.keep("wide", "watch-done-140", false)
}

// TestTerminalPicturesOfAQuestion does the same with the review example, which asks.
func TestTerminalPicturesOfAQuestion(t *testing.T) {
	if !*pictures {
		t.Skip("only with -pictures")
	}
	h := newEnv(t)
	p := h.panes()
	home := h.dir("review")
	server, built, err := local.Cached(local.Options{StateDir: h.state()})
	require.NoError(t, err)
	require.True(t, built, "make server builds it")
	p.open("asks", 80, 46, "PASSBOOK_SERVER="+server+" sh "+filepath.Join(project, "examples", "review", "demo.sh")+" "+
		home)
	p.sees("asks", "Is this the right plan?", "1-4 decide")
	p.keep("asks", "watch-question-80", false)
	p.open("wide", 140, 40, "PASSBOOK_SERVER="+server+" PASSBOOK_STATE_DIR="+filepath.Join(home, "state")+" "+
		filepath.Join(programs, "starter")+" watch "+filepath.Join(home, "run"))
	p.sees("wide", "Is this the right plan?", "1-4 decide")
	p.press("wide", "2")
	p.press("wide", "-l", "Name the file first.")
	p.sees("wide", "> Name the file first.")
	p.keep("wide", "watch-question-140", false)
	p.press("wide", "Enter")
	p.sees("wide", "decided: retry_feedback")
	p.sees("asks", "Is this the right plan?", "1-4 decide", "Planner: $0.04") // asked anew, of the second plan
	p.press("asks", "1")
	p.press("asks", "y")
	p.sees("asks", "all tests pass", "Everything is in")
}
