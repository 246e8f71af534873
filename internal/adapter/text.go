package adapter

import (
	"bytes"
	"unicode/utf8"
)

// textParser reads plain text. Its output has no result: how the program ended decides.
type textParser struct {
	rest []byte // the beginning of a character
}

func newText() Parser { return &textParser{} }

func (p *textParser) Parse(chunk []byte) []Frame {
	text := append(p.rest, chunk...)
	end := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if c := text[len(text)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-i:]) {
				end -= i
			}
			break
		}
	}
	p.rest = bytes.Clone(text[end:])
	return textFrame(text[:end])
}

func (p *textParser) End() []Frame { return textFrame(p.rest) }

func textFrame(text []byte) []Frame {
	if len(text) == 0 {
		return nil
	}
	return []Frame{{Kind: KindText, Text: string(bytes.ToValidUTF8(text, []byte("\uFFFD")))}}
}
