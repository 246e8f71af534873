// Browser stands in for Chromium in tests that do not examine pictures: it answers as much of the protocol as package
// browser uses. Its pictures have the requested sizes and show only the proof mark of the example's page, which the
// scripted agent reads. A start takes a few milliseconds of CPU time, one of Chromium two seconds.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	folder := filepath.Join(filepath.Dir(filepath.Dir(os.Args[0])), "browser")
	if plan, err := os.ReadFile(filepath.Join(folder, "plan")); err == nil && !next(folder, strings.Fields(string(plan))) {
		fmt.Fprintln(os.Stderr, "the browser fell over its own feet")
		os.Exit(3)
	}
	p := pipe{in: bufio.NewReader(os.NewFile(3, "commands")), out: os.NewFile(4, "answers"),
		windows: map[string]*window{}}
	for p.serve() {
		continue
	}
}

// next records the start and reports whether the plan, a word for each start, has the word show for it. The plan is in
// the folder browser beside that of the program.
func next(folder string, plan []string) bool {
	past, err := os.ReadFile(filepath.Join(folder, "starts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false
	}
	n := bytes.Count(past, []byte("\n"))
	past = append(past, []byte(time.Now().UTC().Format(time.RFC3339Nano)+"\n")...)
	err = os.WriteFile(filepath.Join(folder, "starts"), past, 0o600)
	return err == nil && n < len(plan) && plan[n] == "show"
}

type pipe struct {
	in      *bufio.Reader
	out     *os.File
	windows map[string]*window // by session
}

// window is a page at one size.
type window struct {
	size image.Point
	mark color.Color // nil if the page has none
}

type command struct {
	ID      int    `json:"id"`
	Session string `json:"sessionId"`
	Method  string `json:"method"`
	Params  struct {
		TargetID      string `json:"targetId"`
		URL           string
		Width, Height int
		Clip          *struct{ Width, Height float64 }
	} `json:"params"`
}

// serve answers one command; false when there is no more.
func (p pipe) serve() bool {
	raw, err := p.in.ReadBytes(0)
	if err != nil {
		return false
	}
	var c command
	if err := json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &c); err != nil {
		return false
	}
	if !p.say(map[string]any{"id": c.ID, "sessionId": c.Session, "result": p.result(c)}) {
		return false
	}
	switch c.Method {
	case "Target.setDiscoverTargets":
		return p.sendEvent(c, "Target.targetCreated", map[string]any{"targetInfo": map[string]any{
			"targetId": "first", "type": "page", "title": "", "url": "about:blank", "attached": false,
			"canAccessOpener": false,
		}})
	case "Page.navigate":
		tab := tabOf(c)
		frame := map[string]any{"id": tab, "loaderId": "loader", "url": "about:blank", "securityOrigin": "",
			"mimeType": "text/html"}
		return p.sendEvent(c, "Page.frameNavigated", map[string]any{"frame": frame, "type": "Navigation"}) &&
			p.sendEvent(c, "Page.lifecycleEvent", map[string]any{"frameId": tab, "loaderId": "loader", "name": "init",
				"timestamp": 1}) &&
			p.sendEvent(c, "Page.loadEventFired", map[string]any{"timestamp": 1})
	}
	return true
}

func tabOf(c command) string { return strings.TrimPrefix(c.Session, "session-") }

// result is the result of a command. Each page is half as high again as its window.
func (p pipe) result(c command) map[string]any {
	w := p.windows[c.Session]
	if w == nil {
		w = &window{}
		p.windows[c.Session] = w
	}
	switch c.Method {
	case "Target.createBrowserContext":
		return map[string]any{"browserContextId": "context"}
	case "Target.createTarget":
		return map[string]any{"targetId": "tab-" + strconv.Itoa(c.ID)}
	case "Target.attachToTarget":
		return map[string]any{"sessionId": "session-" + c.Params.TargetID}
	case "Target.getTargets":
		return map[string]any{"targetInfos": []any{}}
	case "Emulation.setDeviceMetricsOverride":
		w.size = image.Pt(c.Params.Width, c.Params.Height)
	case "Page.navigate":
		result := map[string]any{"frameId": tabOf(c), "loaderId": "loader"}
		var err error
		if w.mark, err = markOf(c.Params.URL); err != nil {
			result["errorText"] = err.Error()
		}
		return result
	case "Page.createIsolatedWorld":
		return map[string]any{"executionContextId": 7}
	case "Page.getLayoutMetrics":
		return map[string]any{"cssContentSize": map[string]any{"x": 0, "y": 0, "width": w.size.X,
			"height": w.size.Y * 3 / 2}}
	case "Runtime.evaluate":
		return map[string]any{"result": map[string]any{"type": "undefined"}}
	case "Page.captureScreenshot":
		size := w.size
		if clip := c.Params.Clip; clip != nil {
			size = image.Pt(int(clip.Width), int(clip.Height))
		}
		data, err := picture(size, w.mark)
		if err != nil {
			return map[string]any{"errorText": err.Error()}
		}
		return map[string]any{"data": data}
	}
	return map[string]any{}
}

// sendEvent reports what happened because of a command.
func (p pipe) sendEvent(c command, event string, params map[string]any) bool {
	return p.say(map[string]any{"method": event, "sessionId": c.Session, "params": params})
}

// say reports whether the client still listens.
func (p pipe) say(message map[string]any) bool {
	if message["sessionId"] == "" {
		delete(message, "sessionId")
	}
	raw, err := json.Marshal(message)
	if err != nil {
		return false
	}
	_, err = p.out.Write(append(raw, 0))
	return err == nil
}

var (
	polish = regexp.MustCompile(`<main data-polish="(\d)">`)
	marks  = regexp.MustCompile(`(?m)^main(?:\[data-polish="(\d)"\])? \{ --mark: #([0-9a-f]{6})`)
)

// markOf loads a page and returns the color of its proof mark, or nil if it has none.
func markOf(url string) (color.Color, error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	level := polish.FindSubmatch(page)
	if err != nil || level == nil {
		return nil, err
	}
	var mark color.Color
	for _, rule := range marks.FindAllSubmatch(page, -1) { // the one without a level is the first, and for all others
		if len(rule[1]) > 0 && !bytes.Equal(rule[1], level[1]) {
			continue
		}
		c, err := strconv.ParseUint(string(rule[2]), 16, 32)
		if err != nil {
			return nil, err
		}
		mark = color.RGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 0xff}
	}
	return mark, nil
}

// picture is gray, with the mark in its top left corner.
func picture(size image.Point, mark color.Color) (string, error) {
	colors := color.Palette{color.Gray{Y: 0x80}}
	if mark != nil {
		colors = append(colors, mark)
	}
	shown := image.NewPaletted(image.Rectangle{Max: size}, colors)
	const side = 24 // of the mark
	for at := range side * side {
		shown.SetColorIndex(at%side, at/side, uint8(len(colors)-1))
	}
	var b bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.BestSpeed}
	err := fast.Encode(&b, shown)
	return base64.StdEncoding.EncodeToString(b.Bytes()), err
}
