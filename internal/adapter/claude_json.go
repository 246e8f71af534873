package adapter

import "slices"

// claudeJSON reads the output of `claude -p --output-format json`: one object that is the result, or with --verbose an
// array of all events. Lines of text around it are warnings. Anything else makes it incomplete.
type claudeJSON struct {
	split  splitter
	events claudeEvents
	frames []Frame
	result *Frame
	array  bool   // an array is open
	broken string // why the output is no answer
}

func newClaudeJSON() Parser {
	p := &claudeJSON{}
	p.split.consumer = p.take
	return p
}

func (p *claudeJSON) Parse(chunk []byte) []Frame {
	p.split.write(chunk)
	return p.flush()
}

func (p *claudeJSON) End() []Frame {
	p.split.end()
	switch {
	case p.broken != "":
		p.warn(p.broken)
	case p.result == nil:
		p.warn("the output has no result")
	default:
		p.frames = append(p.frames, *p.result)
	}
	return p.flush()
}

func (p *claudeJSON) flush() []Frame {
	frames := p.frames
	p.frames = nil
	return frames
}

func (p *claudeJSON) warn(text string) {
	p.frames = append(p.frames, Frame{Kind: KindWarning, Text: text})
}

func (p *claudeJSON) take(part piece) {
	switch part.kind {
	case pieceOpen, pieceClose:
		p.array = part.kind == pieceOpen
		if p.array && p.result != nil {
			p.breakOff("the output continues after its result")
		}
	case pieceLine:
		p.warn(clip(part.raw, maxLine-1))
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

func (p *claudeJSON) breakOff(why string) {
	if p.broken == "" {
		p.broken = why
	}
}

func (p *claudeJSON) object(raw []byte) {
	frames, ok := p.events.frames(raw, !p.array)
	if !ok {
		p.warn(clip(raw, maxLine-1))
	}
	answered := p.result != nil
	for _, f := range frames {
		if f.Kind == KindResult {
			p.result = &f
		} else {
			p.frames = append(p.frames, f)
		}
	}
	if answered && (!p.array || slices.ContainsFunc(frames, func(f Frame) bool { return f.Kind == KindResult })) {
		p.breakOff("the output continues after its result")
	}
}
