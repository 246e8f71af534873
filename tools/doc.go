// Package tools checks the files that no compiler reads. It is a separate module, so that its requirements do not
// become a dependency of Passbook.
package tools
