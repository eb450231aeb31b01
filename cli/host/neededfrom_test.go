package host

import (
	"testing"

	"ductor/cli"
)

func TestNeededFrom(t *testing.T) {
	for _, tc := range []struct {
		name    string
		marks   []cli.Mark
		settled []cli.TurnID
		want    int64
	}{
		{"no turn yet", nil, nil, 0},
		{"a turn runs", []cli.Mark{{Turn: "1", Output: 5}}, nil, 5},
		{"it is settled, and where its output ends is not marked", []cli.Mark{{Turn: "1", Output: 5}}, []cli.TurnID{"1"}, 5},
		{"it is not settled, and the process rests", []cli.Mark{{Turn: "1", Output: 5}, {Turn: cli.RestMark, Output: 9}}, nil, 5},
		{"it is settled, and the process rests", []cli.Mark{{Turn: "1", Output: 5}, {Turn: cli.RestMark, Output: 9}}, []cli.TurnID{"1"}, 9},
		{"the later of two is settled", []cli.Mark{{Turn: "1", Output: 5}, {Turn: "2", Output: 9}}, []cli.TurnID{"2"}, 5},
		{"the earlier of two is settled", []cli.Mark{{Turn: "1", Output: 5}, {Turn: "2", Output: 9}}, []cli.TurnID{"1"}, 9},
		{"it is to end with its turns", []cli.Mark{{Turn: cli.SpoilMark, Output: 3}, {Turn: "1", Output: 5}}, []cli.TurnID{"1"}, 3},
	} {
		k := &runMarks{all: tc.marks, settled: tc.settled}
		if got := k.neededFrom(); got != tc.want {
			t.Errorf("%s: the output is needed from %d on, want %d", tc.name, got, tc.want)
		}
	}
}
