package browser_test

import (
	"fmt"
	"image"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
)

var (
	small    = browser.Size{W: 320, H: 200}
	viewOnly = browser.Request{Sizes: []browser.Size{small}, Kinds: []string{browser.Viewport}}
	fullOnly = browser.Request{Sizes: []browser.Size{small}, Kinds: []string{browser.Full}}
)

func TestPageHasNoNetworkAccess(t *testing.T) {
	var visits atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer other.Close()
	ws := strings.Replace(other.URL, "http:", "ws:", 1)
	localhost := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	html := fmt.Sprintf(`<!doctype html>
<link rel=stylesheet href="http://example.invalid/style.css">
<link rel=preconnect href="%[1]s">
<style>@font-face { font-family: F; src: url(%[1]s/font.woff2) } body { margin: 0; background: #00ff00; font-family: F }</style>
<img src="%[1]s/image.png"><img loading=lazy src="%[3]s/lazy.png"><iframe style="display:none" src="%[1]s/frame"></iframe>text
<script src="https://example.invalid/script.js"></script>
<script>
  fetch("%[1]s/fetch").catch(() => {});
  navigator.sendBeacon("%[1]s/beacon", "x");
  new WebSocket("%[2]s/socket");
  new Worker(URL.createObjectURL(new Blob(["fetch('%[1]s/worker')"])));
  window.open("%[1]s/popup");
  setTimeout(() => { location.href = "%[1]s/away" }, 20);
</script>`, other.URL, ws, localhost)
	res := shoot(t, []byte(html), viewOnly)

	require.Zero(t, visits.Load(), "the page reached another server")
	for _, url := range []string{
		"http://example.invalid/style.css", "https://example.invalid/script.js", localhost + "/lazy.png",
		ws + "/socket",
		other.URL + "/image.png", other.URL + "/font.woff2", other.URL + "/frame", other.URL + "/fetch",
		other.URL + "/away",
	} {
		require.Contains(t, res.Blocked, url)
	}
	require.IsIncreasing(t, res.Blocked)
	at(t, decode(t, res.Shots[0]), 300, 190, 0x00ff00) // still this page, not where it wanted to go
}

// TestPageStaysTheDocument: a page cannot replace itself by another document, not even by one with the same address.
func TestPageStaysTheDocument(t *testing.T) {
	res := shoot(t, []byte(`<!doctype html><style>body { margin: 0; background: #00ff00 }</style>text
<script>location.href = "/elsewhere"</script>`), viewOnly)
	require.Len(t, res.Blocked, 1)
	require.True(t, strings.HasSuffix(res.Blocked[0], "/elsewhere"), res.Blocked[0])
	at(t, decode(t, res.Shots[0]), 300, 190, 0x00ff00)
}

func TestHighPageIsTruncated(t *testing.T) {
	html := `<!doctype html><body style="margin:0; height: 20000px; background: linear-gradient(red, blue)">`
	res := shoot(t, []byte(html), fullOnly)
	require.Equal(t, image.Pt(small.W, browser.MaxHeight), decode(t, res.Shots[0]).Bounds().Size())
	require.Len(t, res.Notes, 1)
	require.Contains(t, res.Notes[0], "20000 pixels high at 320x200")
}

func TestShortPageHasNoScrollScreenshots(t *testing.T) {
	r := browser.Request{Sizes: []browser.Size{small}, Kinds: cycle.Kinds}
	res := shoot(t, []byte(`<!doctype html><body style="margin:0; height: 50px; background: #ff0000">`), r)
	require.Len(t, res.Shots, 2)
	for _, s := range res.Shots {
		require.Equal(t, small, browser.Size{W: s.Width, H: s.Height}, s.Name)
		at(t, decode(t, s), 319, 199, 0xff0000)
	}
}

func TestWidePageIsTruncated(t *testing.T) {
	html := `<!doctype html><body style="margin:0"><div style="width: 900px; height: 500px; background: #0000ff">`
	res := shoot(t, []byte(html), fullOnly)
	require.Equal(t, image.Pt(320, 500), decode(t, res.Shots[0]).Bounds().Size())
}

func TestEmptyPage(t *testing.T) {
	res := shoot(t, nil, viewOnly)
	at(t, decode(t, res.Shots[0]), 10, 10, 0xffffff)
}

func TestInvalidRequests(t *testing.T) {
	tests := []struct {
		name string
		r    browser.Request
		want string
	}{
		{"no size", browser.Request{Kinds: cycle.Kinds}, "no screenshots requested"},
		{"no kind", browser.Request{Sizes: cycle.Sizes}, "no screenshots requested"},
		{"unknown kind", browser.Request{Sizes: cycle.Sizes, Kinds: []string{"print"}}, `kind "print"`},
		{"no height", browser.Request{Sizes: []browser.Size{{W: 100}}, Kinds: cycle.Kinds}, "size 100x0"},
		{"too wide", browser.Request{Sizes: []browser.Size{{W: 9000, H: 1}}, Kinds: cycle.Kinds}, "size 9000x1"},
		{"twice", browser.Request{Sizes: []browser.Size{small, small}, Kinds: cycle.Kinds}, "duplicate size 320x200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := browser.Shoot(t.Context(), browser.Options{}, browser.Page{Name: "artifact.html"}, tt.r)
			require.ErrorContains(t, err, "screenshots of artifact.html: ")
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// TestPageSendsNoDatagrams lets a page ask STUN and TURN servers, and open an HTTP/3 connection, at a socket on
// loopback.
func TestPageSendsNoDatagrams(t *testing.T) {
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer socket.Close()
	html := fmt.Sprintf(`<!doctype html><body style="height: 9000px"><iframe></iframe><script>
  for (const w of [window, document.querySelector("iframe").contentWindow]) {
    for (const server of [{urls: "stun:%[1]s"}, {urls: "turn:%[1]s", username: "u", credential: "c"}]) {
      const c = new w.RTCPeerConnection({iceServers: [server]});
      c.createDataChannel("x");
      c.createOffer().then(o => c.setLocalDescription(o));
    }
  }
  try { new WebTransport("https://%[1]s/x") } catch {}
</script>`, socket.LocalAddr())
	shoot(t, []byte(html), browser.Request{Sizes: []browser.Size{small},
		Kinds: []string{browser.Scroll}}) // many pictures take the time that the connections need

	require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Millisecond)))
	got := make([]byte, 1500)
	n, from, err := socket.ReadFrom(got)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the page sent %d bytes from %v: %x", n, from, got[:n])
}

// TestPageOpensNoConnections lets a page hint at another server in ways that are not its own requests.
func TestPageOpensNoConnections(t *testing.T) {
	var connections atomic.Int32
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	other.Start()
	defer other.Close()
	html := fmt.Sprintf(`<!doctype html>
<link rel=dns-prefetch href="%[1]s"><link rel=preconnect href="%[1]s"><link rel=prefetch href="%[1]s/p">
<link rel=icon href="%[1]s/favicon.ico">
<meta http-equiv="Content-Security-Policy" content="img-src 'none'">
<script type="speculationrules">{"prefetch":[{"urls":["%[1]s/a"],"eagerness":"immediate"}],
  "prerender":[{"urls":["%[1]s/b"],"eagerness":"immediate"}]}</script>
<img src="%[1]s/violation.png"><a id=link href="#x" ping="%[1]s/ping">a</a>
<script>document.getElementById("link").click()</script>`, other.URL)
	shoot(t, []byte(html), viewOnly)
	require.Zero(t, connections.Load(), "the page opened a connection to another server")
}
