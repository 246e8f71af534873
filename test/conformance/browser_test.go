package conformance

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// playBrowser is a Chromium on its pipe: it knows just enough of the protocol to hand over pictures. At each start it
// does what the next word of the file `plan` beside its folder says: die, or show.
func playBrowser(program string) int {
	folder := filepath.Join(filepath.Dir(filepath.Dir(program)), "browser")
	plan, err := os.ReadFile(filepath.Join(folder, "plan"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	past, _ := os.ReadFile(filepath.Join(folder, "starts"))
	n, words := bytes.Count(past, []byte("\n")), strings.Fields(string(plan))
	past = append(past, []byte(time.Now().UTC().Format(time.RFC3339Nano)+"\n")...)
	if err := os.WriteFile(filepath.Join(folder, "starts"), past, 0o600); err != nil {
		return 1
	}
	if n >= len(words) || words[n] == "die" {
		fmt.Fprintln(os.Stderr, "the browser fell over its own feet")
		return 3
	}
	p := pipe{in: bufio.NewReader(os.NewFile(3, "commands")), out: os.NewFile(4, "answers")}
	for p.serve() {
		continue
	}
	return 0
}

type pipe struct {
	in  *bufio.Reader
	out *os.File
}

type command struct {
	ID      int    `json:"id"`
	Session string `json:"sessionId"`
	Method  string `json:"method"`
	Params  struct {
		TargetID string `json:"targetId"`
		Clip     *struct{ Width, Height float64 }
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
	result := map[string]any{}
	tab := strings.TrimPrefix(c.Session, "session-")
	switch c.Method {
	case "Target.createBrowserContext":
		result["browserContextId"] = "context"
	case "Target.createTarget":
		result["targetId"] = "tab-" + strconv.Itoa(c.ID)
	case "Target.attachToTarget":
		result["sessionId"] = "session-" + c.Params.TargetID
	case "Target.getTargets":
		result["targetInfos"] = []any{}
	case "Page.createIsolatedWorld":
		result["executionContextId"] = 7
	case "Page.getLayoutMetrics":
		result["cssContentSize"] = map[string]any{"x": 0, "y": 0, "width": 100, "height": 150}
	case "Runtime.evaluate":
		result["result"] = map[string]any{"type": "undefined"}
	case "Page.captureScreenshot":
		result["data"] = picture()
	case "Page.navigate":
		result["frameId"], result["loaderId"] = tab, "loader"
	}
	p.say(map[string]any{"id": c.ID, "sessionId": c.Session, "result": result})
	switch c.Method {
	case "Target.setDiscoverTargets":
		p.sendEvent(c, "Target.targetCreated", map[string]any{"targetInfo": map[string]any{
			"targetId": "first", "type": "page", "title": "", "url": "about:blank", "attached": false,
			"canAccessOpener": false,
		}})
	case "Page.navigate":
		frame := map[string]any{"id": tab, "loaderId": "loader", "url": "about:blank", "securityOrigin": "",
			"mimeType": "text/html"}
		p.sendEvent(c, "Page.frameNavigated", map[string]any{"frame": frame, "type": "Navigation"})
		p.sendEvent(c, "Page.lifecycleEvent", map[string]any{"frameId": tab, "loaderId": "loader", "name": "init",
			"timestamp": 1})
		p.sendEvent(c, "Page.loadEventFired", map[string]any{"timestamp": 1})
	}
	return true
}

// sendEvent reports what happened because of a command.
func (p pipe) sendEvent(c command, event string, params map[string]any) {
	p.say(map[string]any{"method": event, "sessionId": c.Session, "params": params})
}

func (p pipe) say(message map[string]any) {
	if message["sessionId"] == "" {
		delete(message, "sessionId")
	}
	raw, err := json.Marshal(message)
	if err == nil {
		_, _ = p.out.Write(append(raw, 0)) // who does not listen any more ends the browser
	}
}

func picture() string {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 100, 100))) // a buffer takes everything
	return base64.StdEncoding.EncodeToString(b.Bytes())
}
