package adapter

import "slices"

// document reads an output that is one JSON object with the result, or an array of events of which one is the result.
// Lines of text around it are warnings. Anything else makes it incomplete.
type document struct {
	frames
	split splitter
	// event returns the frames of an object, or false if it cannot be read. alone: it is not in an array.
	event  func(raw []byte, alone bool) ([]Frame, bool)
	result *Frame
	array  bool   // an array is open
	broken string // why the output is not an answer
}

func newDocument(event func(raw []byte, alone bool) ([]Frame, bool)) Parser {
	p := &document{event: event}
	p.split.consumer = p.take
	return p
}

func (p *document) Parse(chunk []byte) []Frame {
	p.split.write(chunk)
	return p.flush()
}

func (p *document) End() []Frame {
	p.split.end()
	switch {
	case p.broken != "":
		p.warn(p.broken)
	case p.result == nil:
		p.warn("the output has no result")
	default:
		p.add(*p.result)
	}
	return p.end()
}

func (p *document) take(part piece) {
	switch part.kind {
	case pieceOpen, pieceClose:
		p.array = part.kind == pieceOpen
		if p.array && p.result != nil {
			p.breakOff("the output continues after its result")
		}
	case pieceLine:
		p.line(part.raw)
		if p.result != nil && (p.array || slices.Contains([]byte("{[}],\""), part.raw[0])) {
			p.breakOff("the output continues after its result")
		}
	case pieceLarge:
		p.warn(tooLarge(part))
	case pieceUnfinished:
		p.breakOff("the output ends within a JSON value")
	case pieceObject:
		p.object(part.raw)
	}
}

func (p *document) breakOff(why string) {
	if p.broken == "" {
		p.broken = why
	}
}

func (p *document) object(raw []byte) {
	list, ok := p.event(raw, !p.array)
	if !ok {
		p.line(raw)
	}
	answered := p.result != nil
	again := answered && !p.array
	for _, f := range list {
		if f.Kind == KindResult {
			p.result, again = &f, answered
		} else {
			p.add(f)
		}
	}
	if again {
		p.breakOff("the output continues after its result")
	}
}
