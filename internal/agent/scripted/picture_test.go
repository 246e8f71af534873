package scripted

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pictureFolder makes the folder that prompts name in a new working directory.
func pictureFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("pictures", 0o755))
}

// shoot draws what a browser would show of the page: its ground, and the proof mark.
func shoot(t *testing.T, name string, mark color.Color) {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 200, 100))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.RGBA{0xf6, 0xf1, 0xe7, 0xff}), image.Point{}, draw.Src)
	draw.Draw(picture, image.Rect(0, 0, proofSize, proofSize), image.NewUniform(mark), image.Point{}, draw.Src)
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, png.Encode(f, picture))
	require.NoError(t, f.Close())
}

func auditorPrompt(letter, what string) string {
	return "# DETERMINISTIC ORCHESTRATOR — [pa-hardening] Cycle 1 — Auditor " + letter + "\n\nRole: auditor-" + letter +
		"\nRound: 1 of 6\n\n---\n\n" + what + "\n\n---\n\nAnswer PA-03, PA-01.\n"
}

const pictures = "- pictures/full-200x100.png\n- pictures/viewport-200x100.png\n- pictures/scroll-200x100-step1.png"

func TestAuditorsSeeThePolishInThePicture(t *testing.T) {
	pictureFolder(t)
	for level, mark := range proof {
		shoot(t, "pictures/viewport-200x100.png", mark)
		reply := answerOf(t, auditorPrompt("B", pictures), nil).Result
		require.Contains(t, reply, fmt.Sprintf("Seen in viewport-200x100.png: polish %d.", level))
		require.True(t, strings.HasSuffix(reply, fmt.Sprintf("\nScore: %.1f/4\n", 2.5+0.5*float64(level))), reply)
	}
}

func TestAuditorsBelieveThePictureAndNotTheSource(t *testing.T) {
	pictureFolder(t)
	shoot(t, "pictures/viewport-200x100.png", proof[2])
	source := "```html\n<main data-polish=\"0\"><ul class=\"woven\"></ul></html>\n```"
	require.Contains(t, answerOf(t, auditorPrompt("A", pictures+"\n\n"+source), nil).Result, "Score: 3.0/4")
	require.Contains(t, answerOf(t, auditorPrompt("A", source), nil).Result,
		"Seen in the source: polish 0.\n\n- PA-01: NO")
	best := strings.Replace(source, `polish="0"`, `polish="3"`, 1)
	require.Contains(t, answerOf(t, auditorPrompt("C", best), nil).Result, "Score: 4.0/4", "the scale ends there")
}

func TestAuditorsDoNotGuess(t *testing.T) {
	pictureFolder(t)
	code, _, stderr := invoke(auditorPrompt("A", pictures), nil)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no such file")
	shoot(t, "pictures/viewport-200x100.png", color.White)
	code, _, stderr = invoke(auditorPrompt("A", pictures), nil)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no proof mark")
}

func TestSeedPageDrawsProofMark(t *testing.T) {
	seed, err := os.ReadFile("../../../examples/corpus/seed/page.html")
	require.NoError(t, err)
	page := string(seed)
	for level, c := range proof {
		rule := fmt.Sprintf(`main[data-polish="%d"] { --mark: #%02x%02x%02x;`, level, c.R, c.G, c.B)
		if level == 0 {
			rule = fmt.Sprintf("main { --mark: #%02x%02x%02x;", c.R, c.G, c.B)
		}
		require.Contains(t, page, rule)
	}
	require.Contains(t, page,
		fmt.Sprintf("top: 0; left: 0; width: %[1]dpx; height: %[1]dpx; background: var(--mark)", proofSize))
	require.Contains(t, page, listOpen+listClose)
	require.Contains(t, page, `<main data-polish="0">`)
	require.Equal(t, page, readPage(page).text(pageWidth)+"\n", "taking it apart changes nothing")
	require.Contains(t, readPage(page).text(800), "max-width: 800px")
}
