package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stream opens a stream of the recorded run. next returns its next message, without comments.
func (d *desk) stream(header string) (r *http.Response, next func() string, end func()) {
	d.t.Helper()
	c, err := net.Dial("tcp", d.addr)
	require.NoError(d.t, err)
	require.NoError(d.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = c.Write([]byte(d.request("GET", "/v1/runs/"+letter+"/events", "Accept: text/event-stream\n"+
		d.with("read")+"\n"+header, "")))
	require.NoError(d.t, err)
	r, err = http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(d.t, err)
	lines := bufio.NewReader(r.Body)
	return r, func() string {
		d.t.Helper()
		var message strings.Builder
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return message.String() + "EOF"
			}
			if line == "\n" && message.Len() > 0 {
				return message.String()
			}
			message.WriteString(strings.TrimPrefix(line, "\n"))
		}
	}, func() { c.Close() }
}

func anEvent(seq int, kind string) string {
	return fmt.Sprintf(`{"seq":%d,"ts":"2026-11-25T10:20:00.000Z","kind":%q,"phase":null,"payload":{}}`, seq, kind)
}

// TestStreamsFollowARun: a stream begins behind the event that the client has, follows the journal, and ends with the
// run. A browser that asks again gets an empty answer.
func TestStreamsFollowARun(t *testing.T) {
	d := newDesk(t)
	r, next, end := d.stream("Last-Event-ID: 5")
	defer end()
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	require.Equal(t, "retry: 2000\n", next())
	require.Contains(t, next(), "id: 6\nevent: journal\ndata: {\"seq\":6,")
	d.appendEvent(anEvent(7, "a.b"))
	require.Equal(t, "id: 7\nevent: journal\ndata: "+anEvent(7, "a.b")+"\n", next())
	d.appendEvent("damaged")
	d.appendEvent(anEvent(8, "c.d"))
	d.end()
	require.Contains(t, next(), "event: damaged\ndata: {\"line\":8,")
	require.Contains(t, next(), "id: 8\n")
	require.Equal(t, "event: end\ndata: {}\n", next())
	require.Equal(t, "EOF", next())

	r, _, end = d.stream("Last-Event-ID: 8")
	defer end()
	require.Equal(t, http.StatusNoContent, r.StatusCode)
	_, next, end = d.stream("Last-Event-ID: 7")
	defer end()
	require.Equal(t, "retry: 2000\n", next())
	require.Contains(t, next(), "event: damaged\n")
	require.Contains(t, next(), "id: 8\n")
	require.Equal(t, "event: end\ndata: {}\n", next())
}

// TestJournalIsReadOnAfterARebuild: the file is replaced while a stream follows it. No event is read twice.
func TestJournalIsReadOnAfterARebuild(t *testing.T) {
	d := newDesk(t)
	run, err := d.s.host.Find(letter)
	require.NoError(t, err)
	j := journal{dir: run, last: 5}
	read := func() (seen []int64) {
		more, err := j.read(func(l *line) bool {
			seen = append(seen, l.seq)
			return true
		})
		require.NoError(t, err)
		require.False(t, more)
		return seen
	}
	require.Equal(t, []int64{6}, read())
	raw, err := os.ReadFile(d.journal())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(d.journal(), raw[:len(raw)/2], 0o600))
	require.Empty(t, read())
	require.NoError(t, os.WriteFile(d.journal(), append(raw, anEvent(7, "a.b")+"\n{\"seq\":8"...), 0o600))
	require.Equal(t, []int64{7}, read(), "and not the piece of a line that is being written")
	require.NoError(t, os.Remove(d.journal()))
	require.Empty(t, read())
}

// TestDamagedLinesAreNamed: a line that is no event is not left out in silence. Those before the event that the client
// has were named before.
func TestDamagedLinesAreNamed(t *testing.T) {
	d := newDesk(t)
	raw, err := os.ReadFile(d.journal())
	require.NoError(t, err)
	lines := strings.SplitAfter(string(raw), "\n")
	broken := strings.Join(lines[:3], "") + "no JSON\n" + strings.Join(lines[3:], "") + "[]\n" + anEvent(7, "a.b") + "\n"
	require.NoError(t, os.WriteFile(d.journal(), []byte(broken), 0o600))
	for after, want := range map[string][]int64{"0": {4, 8}, "2": {4, 8}, "3": {4, 8}, "4": {8}, "6": {8}, "7": nil} {
		answer, body := d.get("/v1/runs/" + letter + "/events?after=" + after)
		require.Equal(t, 200, answer.StatusCode)
		var list eventList
		require.NoError(t, json.Unmarshal([]byte(body), &list))
		var got []int64
		for _, l := range list.Damaged {
			require.NotEmpty(t, l.Detail)
			got = append(got, l.Line)
		}
		require.Equal(t, want, got, "after %s", after)
	}

	many := strings.Repeat("no JSON\n", maxEvents+1) + anEvent(8, "a.b") + "\n"
	require.NoError(t, os.WriteFile(d.journal(), []byte(broken+many), 0o600))
	_, body := d.get("/v1/runs/" + letter + "/events?after=7")
	var list eventList
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Len(t, list.Events, 1)
	require.Len(t, list.Damaged, maxEvents)
	require.EqualValues(t, 8, list.Last)
	require.False(t, list.More)
}

// TestSlowReadersAreDropped: a client that reads nothing does not hold its stream.
func TestSlowReadersAreDropped(t *testing.T) {
	d := newDesk(t, func(s *Server) { s.pieceTime = 200 * time.Millisecond })
	f, err := os.OpenFile(d.journal(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	long := strings.Repeat("x", 1<<20)
	for seq := 7; seq < 27; seq++ {
		_, err = f.WriteString(anEvent(seq, long) + "\n")
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	_, _, end := d.stream("")
	defer end()
	require.Eventually(t, func() bool { return d.s.streams.Load() == 0 }, 10*time.Second, 20*time.Millisecond)

	_, body := d.get("/v1/runs/" + letter + "/events")
	require.Less(t, len(body), maxAnswer+2<<20)
	require.True(t, strings.HasSuffix(body, `"last":9,"more":true,"closed":false}`+"\n"), body[len(body)-100:])
}

// TestStreamsAreLimited: one client cannot use up the server.
func TestStreamsAreLimited(t *testing.T) {
	d := newDesk(t)
	d.s.streams.Store(maxStreams)
	r, _, end := d.stream("")
	defer end()
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.EqualValues(t, maxStreams, d.s.streams.Load())
	d.s.streams.Store(0)
}
