package tgapi

import (
	"reflect"
	"strings"
	"testing"
)

// A phone cuts labels that are longer than their share of the row, so such rows are split.
func TestRowsThatAPhoneWouldCut(t *testing.T) {
	for labels, want := range map[string]string{
		"✅ Allow once,⛔ Deny":                               "✅ Allow once,⛔ Deny",
		"Allow this session…,Allow pattern…":                "Allow this session…,Allow pattern…",
		"↪ Steer,⚡ Interrupt,✖ Cancel":                      "↪ Steer,⚡ Interrupt,✖ Cancel",
		"In dieser Sitzung erlauben…,Muster erlauben…":      "In dieser Sitzung erlauben…;Muster erlauben…",
		"↪ Hineinreichen,⚡ Unterbrechen,✖ Abbrechen":        "↪ Hineinreichen,⚡ Unterbrechen;✖ Abbrechen",
		"today,✓ 7 days,30 days,a year":                     "today,✓ 7 days,30 days,a year",
		"a title that is long and stands alone in its row…": "a title that is long and stands alone in its row…",
		"本会话中允许这个操作吗,允许":                                    "本会话中允许这个操作吗;允许",
	} {
		if got := keyboardOf(labels).fitted(); !reflect.DeepEqual(got, keyboardOf(want)) {
			t.Errorf("%s is shown as %v", labels, got)
		}
	}
}

// keyboardOf returns a keyboard. Semicolons separate rows and commas separate buttons.
func keyboardOf(labels string) (k Keyboard) {
	for row := range strings.SplitSeq(labels, ";") {
		var buttons []Button
		for label := range strings.SplitSeq(row, ",") {
			buttons = append(buttons, Button{Text: label})
		}
		k = append(k, buttons)
	}
	return k
}
