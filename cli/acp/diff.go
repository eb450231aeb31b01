package acp

import (
	"fmt"
	"strings"
)

const (
	diffContext = 3
	// diffCells bounds the table that finds what two texts have in common. What is beyond it is shown as
	// taken out and put in whole.
	diffCells = 4 << 20
)

// edit is a line of a diff; sign is ' ', '-' or '+'.
type edit struct {
	sign byte
	line string
}

// unified is the unified diff from before to after, without the file header; empty if they are the same.
func unified(before, after string) string {
	if before == after {
		return ""
	}
	var b strings.Builder
	writeHunks(&b, compare(splitLines(before), splitLines(after)))
	return b.String()
}

// splitLines cuts s into lines, each with its newline if it has one.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// compare lists the lines of both texts, in order, by what happened to them.
func compare(before, after []string) []edit {
	var head, tail []edit
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		head = append(head, edit{' ', before[0]})
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		tail = append(tail, edit{' ', before[len(before)-1]})
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	edits := append(head, middle(before, after)...)
	for i := len(tail) - 1; i >= 0; i-- {
		edits = append(edits, tail[i])
	}
	return edits
}

// middle compares texts by their longest common subsequence of lines.
func middle(before, after []string) []edit {
	n, m := len(before), len(after)
	var edits []edit
	if n == 0 || m == 0 || n*m > diffCells {
		for _, l := range before {
			edits = append(edits, edit{'-', l})
		}
		for _, l := range after {
			edits = append(edits, edit{'+', l})
		}
		return edits
	}
	common := make([]int32, (n+1)*(m+1)) // of before[i:] and after[j:]
	at := func(i, j int) *int32 { return &common[i*(m+1)+j] }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if before[i] == after[j] {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	i, j := 0, 0
	for i < n || j < m {
		switch {
		case i < n && j < m && before[i] == after[j]:
			edits = append(edits, edit{' ', before[i]})
			i, j = i+1, j+1
		case j == m || i < n && *at(i+1, j) >= *at(i, j+1):
			edits = append(edits, edit{'-', before[i]})
			i++
		default:
			edits = append(edits, edit{'+', after[j]})
			j++
		}
	}
	return edits
}

// writeHunks writes what changed with a few lines around it.
func writeHunks(b *strings.Builder, edits []edit) {
	oldLine, newLine := 1, 1
	for i := 0; i < len(edits); {
		if edits[i].sign == ' ' && !nearChange(edits, i) {
			oldLine, newLine, i = oldLine+1, newLine+1, i+1
			continue
		}
		end, olds, news := i, 0, 0
		for end < len(edits) && (edits[end].sign != ' ' || nearChange(edits, end)) {
			if edits[end].sign != '+' {
				olds++
			}
			if edits[end].sign != '-' {
				news++
			}
			end++
		}
		fmt.Fprintf(b, "@@ -%s +%s @@\n", span(oldLine, olds), span(newLine, news))
		for _, e := range edits[i:end] {
			b.WriteByte(e.sign)
			b.WriteString(e.line)
			if !strings.HasSuffix(e.line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
		oldLine, newLine, i = oldLine+olds, newLine+news, end
	}
}

// span is a place in a file as a hunk names it: lines of which there is none begin before the first.
func span(line, count int) string {
	if count == 0 {
		line--
	}
	return fmt.Sprintf("%d,%d", line, count)
}

func nearChange(edits []edit, i int) bool {
	for j := max(i-diffContext, 0); j <= min(i+diffContext, len(edits)-1); j++ {
		if edits[j].sign != ' ' {
			return true
		}
	}
	return false
}
