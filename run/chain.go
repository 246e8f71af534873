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
	sum := sha256.Sum256([]byte(string(c) + "\n" + line))
	return Chain(hex.EncodeToString(sum[:]))
}

// Chain returns the chain up to the line, from the one before it.
func (l *Line) Chain(before Chain) Chain { return before.Then(string(l.Bytes)) }

// Over continues the chain over several lines.
func (c Chain) Over(lines []string) Chain {
	for _, l := range lines {
		c = c.Then(l)
	}
	return c
}

// Tail is where a journal ends: the last sequence number and the chain up to it.
type Tail struct {
	Seq   int64 `json:"seq"`
	Chain Chain `json:"chain"`
}
