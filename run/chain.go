package run

import (
	"crypto/sha256"
	"encoding/hex"
)

// Chain is the running digest over all lines up to one: c(0) = "", c(n) = hex(sha256(c(n-1) + "\n" + line n)). It is
// continued from its last value alone, so nothing earlier is read again, and it names everything before it.
type Chain string

// Then continues the chain over one line, without its line feed.
func (c Chain) Then(line string) Chain {
	c, _ = c.then(nil, line)
	return c
}

// then is Then with a buffer that is used again.
func (c Chain) then(buf []byte, line string) (Chain, []byte) {
	buf = append(append(append(buf[:0], c...), '\n'), line...)
	return chainOf(buf), buf
}

// Chain returns the chain up to the line, from the one before it.
func (l *Line) Chain(before Chain) Chain {
	l.scratch = append(append(append(l.scratch[:0], before...), '\n'), l.Bytes...)
	return chainOf(l.scratch)
}

func chainOf(data []byte) Chain {
	sum := sha256.Sum256(data)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return Chain(text[:])
}

// Over continues the chain over several lines.
func (c Chain) Over(lines []string) Chain {
	var buf []byte
	for _, l := range lines {
		c, buf = c.then(buf, l)
	}
	return c
}

// Tail is where a journal ends: the last sequence number and the chain up to it.
type Tail struct {
	Seq   int64 `json:"seq"`
	Chain Chain `json:"chain"`
}
