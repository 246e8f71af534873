package adapter

// lines reads an output with one event on each line. Other lines are warnings.
type lines struct {
	split  splitter
	event  func(raw []byte) ([]Frame, bool) // false: it is not JSON
	last   func() []Frame                   // after the last event; may be nil
	frames []Frame
}

func newLines(event func([]byte) ([]Frame, bool), last func() []Frame) Parser {
	p := &lines{event: event, last: last}
	p.split.lines, p.split.consumer = true, p.take
	return p
}

func (p *lines) Parse(chunk []byte) []Frame {
	p.split.write(chunk)
	return p.flush()
}

func (p *lines) End() []Frame {
	p.split.end()
	if p.last != nil {
		p.frames = append(p.frames, p.last()...)
	}
	return p.flush()
}

func (p *lines) flush() []Frame {
	frames := p.frames
	p.frames = nil
	return frames
}

func (p *lines) take(part piece) {
	switch part.kind {
	case pieceObject:
		frames, ok := p.event(part.raw)
		if !ok {
			p.warn(clip(part.raw, maxLine-1))
		}
		p.frames = append(p.frames, frames...)
	case pieceLarge:
		p.warn(tooLarge(part))
	case pieceUnfinished:
		p.warn("the output ends within an event")
	default:
		p.warn(clip(part.raw, maxLine-1))
	}
}

func (p *lines) warn(text string) { p.frames = append(p.frames, Frame{Kind: KindWarning, Text: text}) }
