package conformance

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ears hears from the kernel what happens to the names in a directory tree.
type ears struct {
	fd      int
	f       *os.File
	folders map[int32]string
	made    map[string]bool // temporary files of state.json whose beginning was heard
	read    map[string]bool // and those that were read
	kernel  *kernelEvents
}

// listen begins before the run does, and adds each folder as it appears.
func listen(t *testing.T, s *observer) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	e := &ears{fd: fd, f: os.NewFile(uintptr(fd), "inotify"), folders: map[int32]string{}, made: map[string]bool{},
		read: map[string]bool{}, kernel: &s.kernel}
	s.kernel.works = true
	e.add(s.dir)
	s.done.Go(e.hear)
	go func() {
		<-s.stop
		e.finish()
	}()
}

// finish stops listening when everything that was said has been heard. TIOCINQ is FIONREAD: how many bytes wait to be
// read.
func (e *ears) finish() {
	for {
		if n, err := unix.IoctlGetInt(e.fd, unix.TIOCINQ); err != nil || n == 0 {
			break
		}
		runtime.Gosched()
	}
	e.f.Close()
}

func (e *ears) add(folder string) {
	wd, err := unix.InotifyAddWatch(e.fd, folder,
		unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_ACCESS|unix.IN_ONLYDIR)
	if err != nil {
		return
	}
	e.folders[int32(wd)] = folder
	entries, _ := os.ReadDir(folder)
	for _, sub := range entries {
		if sub.IsDir() {
			e.add(filepath.Join(folder, sub.Name()))
		}
	}
}

func (e *ears) hear() {
	buf := make([]byte, 64<<10)
	for {
		n, err := e.f.Read(buf)
		if err != nil {
			return // closed
		}
		for at := 0; at < n; {
			ev := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent
			name := strings.TrimRight(string(buf[at:at+int(ev.Len)]), "\x00")
			at += int(ev.Len)
			e.note(filepath.Join(e.folders[ev.Wd], name), ev.Mask)
		}
	}
}

func (e *ears) note(path string, mask uint32) {
	switch {
	case mask&unix.IN_ISDIR != 0 && mask&unix.IN_CREATE != 0:
		e.add(path)
	case mask&unix.IN_CREATE != 0 && newState(path):
		e.made[path] = true
	case mask&unix.IN_MOVED_TO != 0 && filepath.Base(path) == "state.json":
		e.kernel.renamed++
	case mask&unix.IN_ACCESS != 0 && newState(path):
		e.read[path] = true
	case mask&unix.IN_MOVED_FROM != 0 && newState(path):
		e.kernel.replaced++
		if e.made[path] && !e.read[path] {
			e.kernel.unread = append(e.kernel.unread, path)
		}
		if e.made[path] {
			e.kernel.whole++
		}
		delete(e.made, path)
		delete(e.read, path)
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0 && !temporary(path):
		e.kernel.removed = append(e.kernel.removed, path)
	}
}

func newState(path string) bool { return strings.HasPrefix(filepath.Base(path), "state.json.tmp.") }
