package run

import "slices"

// CrossWork tracks the open phases in the stream of a run across projects, and the children that it names. The zero
// value is the state before the first event.
type CrossWork struct {
	children []string // in the stream, each once
	current  string   // the last started child that has not ended
	open     []openPhase
}

type openPhase struct{ alias, phase string }

// crossMember identifies the member that an event of such a stream is about.
type crossMember struct {
	Alias    string `json:"project_alias"`
	Phase    string `json:"phase_key"`
	Status   Status `json:"status"`
	Projects any    `json:"projects"`
}

// Note adds one event.
func (w *CrossWork) Note(e Event) {
	if r := kinds[e.Kind]; r != nil && r.across != nil {
		r.across(w, decoded[crossMember](&e))
	}
}

func (w *CrossWork) begin(p crossMember) { w.start(p.Alias) }

func (w *CrossWork) finish(p crossMember) { w.end(p.Alias, p.Projects != nil, p.Status) }

func (w *CrossWork) interrupt(crossMember) { w.current, w.open = "", nil }

func (w *CrossWork) beginPhase(p crossMember) {
	if phase := w.phase(p.Alias, p.Phase); p.Phase != "" && !slices.Contains(w.open, phase) {
		w.open = append(w.open, phase)
	}
}

func (w *CrossWork) endPhase(p crossMember) {
	phase := w.phase(p.Alias, p.Phase)
	w.open = slices.DeleteFunc(w.open, func(o openPhase) bool { return o == phase })
}

// phase is a phase of the named child, or else of the current one.
func (w *CrossWork) phase(alias, key string) openPhase {
	if alias == "" {
		alias = w.current
	}
	return openPhase{alias, key}
}

// start folds the start of a child, or of the parent: then no phase of an earlier process is open.
func (w *CrossWork) start(alias string) {
	w.current = alias
	if alias == "" {
		w.open = nil
		return
	}
	w.stop(alias)
	if !slices.Contains(w.children, alias) {
		w.children = append(w.children, alias)
	}
}

// end folds the end of a child, or of the parent. A failure ends everything open; a run that is done should have
// nothing open.
func (w *CrossWork) end(alias string, parent bool, status Status) {
	if alias == "" && !parent {
		alias = w.current
	}
	switch {
	case alias != "":
		w.stop(alias)
		w.current = ""
	case status != Done:
		w.open = nil
	}
}

func (w *CrossWork) stop(alias string) {
	w.open = slices.DeleteFunc(w.open, func(o openPhase) bool { return o.alias == alias })
}

// Working reports whether a phase of a child is open, or of the parent if the alias is empty.
func (w *CrossWork) Working(alias string) bool {
	return slices.ContainsFunc(w.open, func(o openPhase) bool { return o.alias == alias })
}

// Children lists the children in the stream, in the order of their first starts.
func (w *CrossWork) Children() []string { return slices.Clip(w.children) }
