package watch

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

var codes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// draw returns a scene on a terminal of a size, without keys.
func draw(s Scene, width, height int, dark bool) string {
	text, _ := newTheme(dark, colorprofile.TrueColor).screen(s, nil, 0, width, height)
	return text
}

// TestScreens compares the screens with reviewed files.
func TestScreens(t *testing.T) {
	for _, row := range []struct {
		name          string
		scene         Scene
		width, height int
	}{
		{"pass-35-at-70x60", at35(), 70, 60}, {"pass-35-at-80x24", at35(), 80, 24},
		{"pass-35-at-140x36", at35(), 140, 36}, {"cycle-2-at-80x60", inCycle2(), 80, 60},
		{"cycle-2-at-200x40", inCycle2(), 200, 40}, {"question-at-80x50", asking(), 80, 50},
		{"question-at-140x40", asking(), 140, 40},
		{"limit-at-80x24", waitingForLimit(), 80, 24}, {"delivery-at-140x80", delivering(), 140, 80},
		{"closing-check-at-140x80", closing(), 140, 80}, {"lanes-at-80x60", parallel(), 80, 60},
		{"lanes-at-140x60", parallel(), 140, 60},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := plainly(row.scene, row.width, row.height) + "\n"
			testenv.Golden(t, *update, row.name, got)
		})
	}
}

// TestEveryWidthFits requires that no line is wider than the terminal, and no screen higher.
func TestEveryWidthFits(t *testing.T) {
	for name, scene := range map[string]Scene{"pass 35": at35(), "cycle 2": inCycle2(), "question": asking(),
		"nothing": {}} {
		for width := 20; width <= 200; width += 3 {
			for _, height := range []int{8, 24, 50, 90} {
				where := fmt.Sprintf("%s at %dx%d", name, width, height)
				lines := strings.Split(draw(scene, width, height, false), "\n")
				require.LessOrEqual(t, len(lines), height, where)
				for _, l := range lines {
					require.LessOrEqual(t, lipgloss.Width(l), width, "%s: %q", where, l)
				}
			}
		}
	}
}

// TestSymbolsRepeatColours loses nothing without colours.
func TestSymbolsRepeatColours(t *testing.T) {
	s := at35()
	for status, sign := range map[run.Status]string{run.Running: "▶ running", run.Paused: "‖ paused",
		run.Done: "✓ done", run.Failed: "✗ failed", run.Interrupted: "✗ interrupted"} {
		s.Status = status
		require.Contains(t, plainly(s, 80, 60), sign)
	}
	require.Contains(t, plainly(at35(), 80, 60), "FAIL", "pass 34 has not passed")
}

// TestThemesDiffer has different colours, and the same text, for each background.
func TestThemesDiffer(t *testing.T) {
	dark, light := draw(at35(), 80, 60, true), draw(at35(), 80, 60, false)
	require.NotEqual(t, dark, light)
	require.Equal(t, codes.ReplaceAllString(dark, ""), codes.ReplaceAllString(light, ""))
}

func TestScrollingReachesEnd(t *testing.T) {
	th := newTheme(true, colorprofile.TrueColor)
	all := []string{"1", "2", "3", "4", "5", "6"}
	shown, last := th.window(all, 0, 4, 20)
	require.Equal(t, 3, last)
	require.Equal(t, []string{"1", "2", "3"}, shown[:3])
	require.Contains(t, shown[3], "3 more lines")
	shown, _ = th.window(all, 99, 4, 20)
	require.Equal(t, []string{"4", "5", "6"}, shown[:3])
	shown, last = th.window(all, 0, 6, 20)
	require.Equal(t, all, shown)
	require.Zero(t, last)
}
