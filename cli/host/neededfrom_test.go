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
		over    int64
		want    int64
	}{
		{"no turn yet", nil, nil, 0, 0},
		{"a turn runs", []cli.Mark{{Turn: "1", Output: 5}}, nil, 0, 5},
		{"it has ended, and is not settled", []cli.Mark{{Turn: "1", Output: 5}}, nil, 9, 5},
		{"it is settled, and has not ended", []cli.Mark{{Turn: "1", Output: 5}}, []cli.TurnID{"1"}, 0, 5},
		{"it has ended, and is settled", []cli.Mark{{Turn: "1", Output: 5}}, []cli.TurnID{"1"}, 9, 9},
		{"and the next one runs", []cli.Mark{{Turn: "1", Output: 5}, {Turn: "2", Output: 12}}, []cli.TurnID{"1"}, 9, 12},
		{"the later of two is settled", []cli.Mark{{Turn: "1", Output: 5}, {Turn: "2", Output: 9}}, []cli.TurnID{"2"}, 0, 5},
		{"the earlier of two is settled", []cli.Mark{{Turn: "1", Output: 5}, {Turn: "2", Output: 9}}, []cli.TurnID{"1"}, 0, 9},
	} {
		k := &runMarks{all: tc.marks, settled: tc.settled, over: tc.over}
		if got := k.neededFrom(); got != tc.want {
			t.Errorf("%s: the output is needed from %d on, want %d", tc.name, got, tc.want)
		}
	}
}
