package picture

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const sampleDiff = `diff --git a/cmd/shop/main.go b/cmd/shop/main.go
index 1111111..2222222 100644
--- a/cmd/shop/main.go
+++ b/cmd/shop/main.go
@@ -10,7 +10,8 @@ func main() {
 	prices := load("prices.csv")
 	for _, p := range prices {
-		fmt.Println(p.Name, p.Cents)
+		total += p.Cents * p.Count // ✓ Füße
+		fmt.Printf("%-20s %8.2f a line that is far too long for a phone\n", p.Name, float64(p.Cents)/100)
 	}
-	return
 }
diff --git a/notes.txt b/notes.txt
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/notes.txt
@@ -0,0 +1 @@
+Prices are in cents.
\ No newline at end of file
diff --git a/old name.png b/pictures/new.png
similarity index 98%
rename from old name.png
rename to pictures/new.png
Binary files a/old name.png and b/pictures/new.png differ
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-It is gone.
`

var english = Words{New: "new", Deleted: "deleted", Binary: "binary", Was: "was", Mode: "mode", Line: "line"}

func TestADiffHasAHeadingForEachFile(t *testing.T) {
	var rows []string
	for _, row := range diffRows(sampleDiff, english) {
		text := ""
		for _, run := range row.Runs {
			text += run.Text
		}
		rows = append(rows, text)
	}
	want := `cmd/shop/main.go +2 -2
line 10 · func main() {
    prices := load("prices.csv")
    for _, p := range prices {
-       fmt.Println(p.Name, p.Cents)
+       total += p.Cents * p.Count // ✓ Füße
+       fmt.Printf("%-20s %8.2f a line that is f
  ar too long for a phone\n", p.Name, float64(p.
  Cents)/100)
    }
-   return
  }

notes.txt +1 new
+ Prices are in cents.
   No newline at end of file

pictures/new.png was old name.png binary

run.sh mode 755

gone.txt -1 deleted
- It is gone.`
	var got []string
	for _, row := range rows {
		got = append(got, strings.TrimRight(row, " "))
	}
	if strings.Join(got, "\n") != want {
		t.Errorf("it is\n%s", strings.Join(got, "\n"))
	}
}

func TestDiffsAreDrawn(t *testing.T) {
	for name, theme := range map[string]Theme{"light": Light, "dark": Dark} {
		data, ok, err := Diff(theme, sampleDiff, 40, english)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, "diff-"+name+".png"), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, diff := range map[string]string{"long": sampleDiff + strings.Repeat("+x\n", 50), "empty": "", "not in the font": "@@ -1 +1 @@\n+漢字\n"} {
		if _, ok, err := Diff(Light, diff, 40, english); ok && name != "empty" || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

// Whatever a diff contains, it is drawn within bounds or rejected.
func TestAnyDiffIsDrawnOrLeft(t *testing.T) {
	piece := rapid.SampledFrom(append(strings.SplitAfter(sampleDiff, "\n"), "@@ @@\n", "@@ -\n", "\n", "+\n", "diff --git \n", "--- \n", "\t\t\n", "-\x00\x1b[31m\n"))
	rapid.Check(t, func(t *rapid.T) {
		diff := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		data, ok, err := Diff(Dark, diff, 30, english)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		if got, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || got.Height > height(30) || got.Width != width(PhoneColumns) {
			t.Errorf("it is %+v, %v", got, err)
		}
	})
}
