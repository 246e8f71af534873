package adapter

import "fmt"

// lines reads an output with one event on each line. Other lines are warnings.
type lines struct {
	frames
	split splitter
	event func(raw []byte) ([]Frame, bool) // false: it cannot be read
}

func newLines(event func([]byte) ([]Frame, bool)) Parser {
	p := &lines{event: event}
	p.split.lines, p.split.consumer = true, p.take
	return p
}

func (p *lines) Parse(chunk []byte) []Frame {
	p.split.write(chunk)
	return p.flush()
}

func (p *lines) End() []Frame {
	p.split.end()
	return p.end()
}

func (p *lines) take(part piece) {
	switch part.kind {
	case pieceObject:
		if frames, ok := p.event(part.raw); ok {
			p.add(frames...)
		} else {
			p.line(part.raw)
		}
	case pieceLarge:
		p.warn(tooLarge(part))
	case pieceUnfinished:
		p.warn("the output ends within an event")
	default:
		p.line(part.raw)
	}
}

// maxLines is the number of lines that are not events for which there is a warning each.
const maxLines = 1000

// frames collects the frames of a chunk.
type frames struct {
	list []Frame
	read int // lines that are not events
}

func (f *frames) add(list ...Frame) { f.list = append(f.list, list...) }

func (f *frames) warn(text string) { f.add(Frame{Kind: KindWarning, Text: text}) }

// line warns of a line that is not an event.
func (f *frames) line(raw []byte) {
	if f.read++; f.read <= maxLines {
		f.warn(clip(raw, maxLine-1))
	}
}

// flush returns the frames since the last call.
func (f *frames) flush() []Frame {
	list := f.list
	f.list = nil
	return list
}

// end returns the last frames.
func (f *frames) end() []Frame {
	if f.read > maxLines {
		f.warn(fmt.Sprintf("%d more lines are not events", f.read-maxLines))
	}
	return f.flush()
}
