package projector

import (
	"bytes"
	"sync"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/rundir"
)

// A [Memory] has at most maxRemembered run directories, whose files have maxBytes together. One run counts whatever its
// size.
const (
	maxRemembered = 64
	maxBytes      = 64 << 20
)

// Memory has the contents of meta.json and state.json as this process wrote them last, so that the next projection of
// the run need not parse them. They count only for a file with the same bytes: it is read and compared every time,
// state.json by every batch that writes it.
type Memory struct {
	mu   sync.Mutex
	runs map[string]*remembered // by directory
}

// remembered has bytes and contents of both files. Who takes contents owns them: a projector changes them in place.
type remembered struct {
	metaRaw, stateRaw []byte
	meta              *rundir.Meta
	state             *encodable
	mark              *rundir.StateMark // of state.json
}

// encodable is contents of state.json with their encoder.
type encodable struct {
	rundir.PipelineState
	encoder encoder
}

// takeMeta returns the contents of meta.json with these bytes, once.
func (m *Memory) takeMeta(root string, raw []byte) (meta *rundir.Meta) {
	m.with(root, func(r *remembered) {
		if bytes.Equal(r.metaRaw, raw) {
			meta, r.meta = r.meta, nil
		}
	})
	return meta
}

// takeState returns the contents of state.json with these bytes, once.
func (m *Memory) takeState(root string, raw []byte) (state *encodable) {
	m.with(root, func(r *remembered) {
		if bytes.Equal(r.stateRaw, raw) {
			state, r.state = r.state, nil
		}
	})
	return state
}

// lightState returns the contents of state.json with this mark, encoded without the lists that grow. They stay here,
// for the next batch that writes the file.
func (m *Memory) lightState(root string, mark rundir.StateMark) (state []byte) {
	m.with(root, func(r *remembered) {
		if r.state != nil && r.mark != nil && *r.mark == mark {
			if text, err := disk.Marshal(light(r.state.PipelineState)); err == nil {
				state = text
			}
		}
	})
	return state
}

// keep remembers what was written to a directory; of a file without bytes nothing was. Its writer must not use it
// afterwards.
func (m *Memory) keep(root string, wrote remembered) {
	m.with(root, func(r *remembered) {
		if wrote.metaRaw != nil {
			r.metaRaw, r.meta = wrote.metaRaw, wrote.meta
		}
		if wrote.stateRaw != nil {
			r.stateRaw, r.state, r.mark = wrote.stateRaw, wrote.state, wrote.mark
		}
		all := 0
		for _, other := range m.runs {
			all += len(other.metaRaw) + len(other.stateRaw)
		}
		if all > maxBytes {
			m.runs = map[string]*remembered{root: r}
		}
	})
}

func (m *Memory) with(root string, do func(*remembered)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[root]
	if r == nil {
		if m.runs == nil || len(m.runs) == maxRemembered {
			m.runs = map[string]*remembered{}
		}
		r = &remembered{}
		m.runs[root] = r
	}
	do(r)
}
