package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// keptFor is the time for which the answer to a request with a key is kept.
const keptFor = 24 * time.Hour

// key is what an Idempotency-Key may be.
var key = lazyregexp.New(`^[\x21-\x7e]{1,200}$`)

// kept is a request with a key, and its answer. It is on disk before the request is executed: a request that was
// interrupted by the end of the console is executed again under the same id, which its effects have too.
type kept struct {
	Request string          `json:"request"` // digest of method, path and body
	At      time.Time       `json:"at"`
	Status  int             `json:"status,omitempty"` // 0: not answered yet
	Type    string          `json:"type,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// once executes a request with an Idempotency-Key once. Its repetitions get the same answer.
func (s *Server) once(w http.ResponseWriter, r *http.Request, rt route) {
	sent := r.Header.Values("Idempotency-Key")
	if len(sent) == 0 {
		rt.serve(s, w, r)
		return
	}
	if len(sent) > 1 || !key.MatchString(sent[0]) {
		refuse(w, newProblem(api.CodeInvalid, "the Idempotency-Key must have 1 to 200 characters without spaces"))
		return
	}
	who, _ := access.From(r.Context())
	login := access.Session(r.Context()) != "" // a token may have the name of the user
	id := digest(strconv.FormatBool(login), who.Name, sent[0])
	if err := s.keepOnce(w, r, rt, id); err != nil {
		err = fmt.Errorf("%s: keep the request and its answer: %w", rt.name, err)
		refuse(w, s.problemOf(err))
	}
}

// keepOnce executes the request with an id unless it was answered. Two at once wait for each other.
func (s *Server) keepOnce(w http.ResponseWriter, r *http.Request, rt route, id string) (err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	folder := filepath.Join(s.host.Settings.StateDir, "console", "requests")
	if err := (disk.Disk{}).Mkdir(folder, 0o700); err != nil {
		return err
	}
	file := filepath.Join(folder, id)
	lock, err := (disk.Disk{}).WaitLock(r.Context(), file+".lock", disk.Self("a request to the console", time.Now()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Remove()) }()
	is := kept{Request: digest(r.Method, r.URL.Path, string(body)), At: time.Now().UTC()}
	was, known, err := readKept(file)
	switch {
	case err != nil:
		return err
	case known && was.Request != is.Request:
		refuse(w, newProblem(codeReused, "the Idempotency-Key was used for another request; use a new key"))
		return nil
	case known && was.Status != 0:
		w.Header().Set("Content-Type", was.Type)
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(was.Status)
		_, _ = w.Write(was.Body) // the client has gone
		return nil
	case !known:
		if err := writeKept(file, is); err != nil {
			return err
		}
	}
	// the client may go: the request is executed, and its answer is kept
	ctx := access.WithRequest(context.WithoutCancel(r.Context()), id)
	answered := &recorded{header: w.Header(), status: http.StatusOK}
	rt.serve(s, answered, r.WithContext(ctx))
	if answered.status < http.StatusMultipleChoices { // else nothing was changed, and a repetition may succeed
		is.Status, is.Type, is.Body = answered.status, w.Header().Get("Content-Type"), answered.body.Bytes()
		if err := writeKept(file, is); err != nil {
			return err
		}
	}
	w.WriteHeader(answered.status)
	_, _ = w.Write(answered.body.Bytes()) // the client has gone
	return nil
}

func readKept(file string) (k kept, known bool, err error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	return k, err == nil, err
}

func writeKept(file string, k kept) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return disk.Disk{}.WriteFile(file, raw, 0o600)
}

// forget removes the answers that were kept long enough.
func forget(stateDir string, now time.Time) error {
	folder := filepath.Join(stateDir, "console", "requests")
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < keptFor {
			continue
		}
		if err := os.Remove(filepath.Join(folder, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// recorded is a response that is sent when its body is kept.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header of the response.
func (r *recorded) Header() http.Header { return r.header }

// WriteHeader keeps the status.
func (r *recorded) WriteHeader(status int) { r.status = status }

// Write keeps a piece of the body.
func (r *recorded) Write(data []byte) (int, error) { return r.body.Write(data) }

// digest joins texts to one id.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var size [8]byte
		for i := range size {
			size[i] = byte(len(p) >> (8 * i))
		}
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
