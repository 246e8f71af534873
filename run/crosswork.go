package run

import "slices"

// CrossWork follows which phases are open in the stream of a run across projects, and which children it names. The zero value is the beginning.
type CrossWork struct {
	children []string // that the stream names, each once
	current  string   // the child that started last and has not ended
	open     []openPhase
}

type openPhase struct{ alias, phase string }

// Note takes one event.
func (w *CrossWork) Note(e Event) {
	switch e.Kind {
	case KindRunStart, KindRunStarted, KindRunEnd, KindRunInterrupted, KindPhaseStart, KindPhaseEnd:
	default:
		return
	}
	var p struct {
		Alias    string `json:"project_alias"`
		Phase    string `json:"phase_key"`
		Status   Status `json:"status"`
		Projects any    `json:"projects"`
	}
	e.Decode(&p)
	switch e.Kind {
	case KindRunStart, KindRunStarted:
		w.start(p.Alias)
	case KindRunInterrupted:
		w.current, w.open = "", nil
	case KindRunEnd:
		w.end(p.Alias, p.Projects != nil, p.Status)
	case KindPhaseStart:
		if phase := w.phase(p.Alias, p.Phase); p.Phase != "" && !slices.Contains(w.open, phase) {
			w.open = append(w.open, phase)
		}
	case KindPhaseEnd:
		phase := w.phase(p.Alias, p.Phase)
		w.open = slices.DeleteFunc(w.open, func(o openPhase) bool { return o == phase })
	}
}

// phase is a phase of the child that is named, or else of the one that works.
func (w *CrossWork) phase(alias, key string) openPhase {
	if alias == "" {
		alias = w.current
	}
	return openPhase{alias, key}
}

// start folds the start of a child, or of the parent: then nothing that an earlier process had begun is open.
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

// end folds the end of a child, or of the parent. A failure ends what was open; a run that says done should have nothing open.
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

// Working says that a phase of a child is open; of the parent, where the alias is empty.
func (w *CrossWork) Working(alias string) bool {
	return slices.ContainsFunc(w.open, func(o openPhase) bool { return o.alias == alias })
}

// Children are the children that the stream names, in the order of their first starts.
func (w *CrossWork) Children() []string { return slices.Clip(w.children) }
