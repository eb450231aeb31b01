package updates

import "testing"

func TestCaptionsOfAnAlbum(t *testing.T) {
	album := []*Message{{part: part{album: "g"}}, {part: part{album: "g"}, Text: "one"}, {part: part{album: "g"}}, {part: part{album: "g"}, Text: "two"}}
	if got := wordingOf(album); got != "one\ntwo" {
		t.Errorf("captions %q, want a line each", got)
	}
}
