package cli

import "testing"

func TestNeededFrom(t *testing.T) {
	for _, tc := range []struct {
		name    string
		marks   []Mark
		settled []TurnID
		want    int64
	}{
		{"no turn yet", nil, nil, 0},
		{"a turn runs", []Mark{{Turn: "1", Output: 5}}, nil, 5},
		{"it is settled, and where its output ends is not marked", []Mark{{Turn: "1", Output: 5}}, []TurnID{"1"}, 5},
		{"it is not settled, and the process rests", []Mark{{Turn: "1", Output: 5}, {Turn: RestMark, Output: 9}}, nil, 5},
		{"it is settled, and the process rests", []Mark{{Turn: "1", Output: 5}, {Turn: RestMark, Output: 9}}, []TurnID{"1"}, 9},
		{"the later of two is settled", []Mark{{Turn: "1", Output: 5}, {Turn: "2", Output: 9}}, []TurnID{"2"}, 5},
		{"the earlier of two is settled", []Mark{{Turn: "1", Output: 5}, {Turn: "2", Output: 9}}, []TurnID{"1"}, 9},
		{"it is to end with its turns", []Mark{{Turn: SpoilMark, Output: 3}, {Turn: "1", Output: 5}}, []TurnID{"1"}, 3},
	} {
		k := &runMarks{all: tc.marks, settled: tc.settled}
		if got := k.neededFrom(); got != tc.want {
			t.Errorf("%s: the output is needed from %d on, want %d", tc.name, got, tc.want)
		}
	}
}
