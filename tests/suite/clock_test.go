package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What holds Rayfit or others to figures, and may look at the clock for it.
var measuring = []string{"bench", "compare", "kuberay", "latency"}

// What tests of the short set are made of.
var helpers = []string{"faulty", "lab/labtest", "playgcs", "rig", "scaling", "scaling/scalingtest"}

// longestSleep is the longest pause between two looks at a condition.
const longestSleep = 100 * time.Millisecond

// A test that waits for a fixed time, or holds Rayfit to one, fails for nothing on a
// slow machine, and costs that time on a fast one.
func TestNothingInTheShortSetIsDecidedByTheClock(t *testing.T) {
	folders, _ := every(t)
	looked := 0
	for _, file := range clocked(t, folders) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range clockFaults(t, file, string(text)) {
			t.Error(fault)
		}
		looked++
	}
	if looked < 30 {
		t.Errorf("only %d files were looked at", looked)
	}
}

// clocked are the files of tests that are in the short set, and of what they are made of.
func clocked(t *testing.T, folders []string) []string {
	t.Helper()
	var found []string
	for _, one := range jobs("short", folders) {
		files, err := filepath.Glob(filepath.Join(one.folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !slices.Contains(measuring, one.folder) && one.runsSomeOf(t, file) {
				found = append(found, file)
			}
		}
	}
	for _, folder := range helpers {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", folder, err)
		}
		found = append(found, files...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// runsSomeOf says whether a job runs a test of a file. A file without tests has what
// others share.
func (j job) runsSomeOf(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tests := declared.FindAllStringSubmatch(string(text), -1)
	return len(tests) == 0 || slices.ContainsFunc(tests, func(found []string) bool {
		wholly, partly := j.admits(found[1])
		return wholly || partly
	})
}

// clockFaults are the places where a file waits for a fixed time, or compares one that
// has gone by.
func clockFaults(t *testing.T, name, text string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	complain := func(node ast.Node, why string) {
		faults = append(faults, fmt.Sprintf("%s: %s", files.Position(node.Pos()), why))
	}
	chosen := map[ast.Node]bool{} // what a select waits for beside other things
	elapsed := map[string]bool{}  // names of durations that were measured
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectStmt:
			for _, clause := range n.Body.List {
				if wait, ok := clause.(*ast.CommClause).Comm.(*ast.ExprStmt); ok && len(n.Body.List) > 1 {
					chosen[wait.X] = true
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && isCall(n.X, "time", "After") && !chosen[n] {
				complain(n, "a fixed pause: wait for a condition")
			}
		case *ast.CallExpr:
			if isCall(n, "time", "Sleep") && !isShort(file, n.Args[0]) {
				complain(n, "a pause of 100 ms or more: wait for a condition")
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) && isElapsed(n.Rhs[i], nil) {
					elapsed[id.Name] = true
				}
			}
		case *ast.BinaryExpr:
			order := n.Op == token.LSS || n.Op == token.LEQ || n.Op == token.GTR || n.Op == token.GEQ
			if order && (isElapsed(n.X, elapsed) || isElapsed(n.Y, elapsed)) {
				complain(n, "the time that something took decides: move the test to the rest, or wait for what happens")
			}
		}
		return true
	})
	return faults
}

// isCall says whether an expression calls a function of a package.
func isCall(e ast.Expr, name, function string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	in, ok := of.X.(*ast.Ident)
	return ok && in.Name == name && of.Sel.Name == function
}

// isElapsed says whether an expression is, or is made of, the time between two moments.
func isElapsed(e ast.Expr, named map[string]bool) bool {
	found := false
	ast.Inspect(e, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Ident:
			found = found || named[n.Name]
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			found = found || isCall(n, "time", "Since") || ok && method.Sel.Name == "Sub" && len(n.Args) == 1
		case *ast.FuncLit:
			return false
		}
		return !found
	})
	return found
}

// units are those that pauses are written in.
var units = map[string]time.Duration{"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// isShort says whether a pause is known, from its file, to be shorter than longestSleep.
func isShort(file *ast.File, pause ast.Expr) bool {
	value := valueOf(file, pause)
	if value == nil {
		return false
	}
	length, exact := constant.Int64Val(constant.ToInt(value))
	return exact && time.Duration(length) < longestSleep
}

// valueOf is the value of a constant expression, nil if the file does not tell it.
func valueOf(file *ast.File, e ast.Expr) constant.Value {
	switch n := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(n.Value, n.Kind, 0)
	case *ast.SelectorExpr:
		if unit, known := units[n.Sel.Name]; known {
			return constant.MakeInt64(int64(unit))
		}
	case *ast.BinaryExpr:
		left, right := valueOf(file, n.X), valueOf(file, n.Y)
		if left != nil && right != nil && n.Op == token.MUL {
			return constant.BinaryOp(left, n.Op, right)
		}
	case *ast.Ident:
		for _, declaration := range file.Decls {
			constants, ok := declaration.(*ast.GenDecl)
			if !ok || constants.Tok != token.CONST {
				continue
			}
			for _, spec := range constants.Specs {
				named := spec.(*ast.ValueSpec)
				if i := slices.IndexFunc(named.Names, func(id *ast.Ident) bool { return id.Name == n.Name }); i >= 0 && i < len(named.Values) {
					return valueOf(file, named.Values[i])
				}
			}
		}
	}
	return nil
}

func TestClockFaultsAreFound(t *testing.T) {
	for body, faults := range map[string]int{
		`time.Sleep(100 * time.Millisecond)`:                                  1,
		`time.Sleep(poll)`:                                                    0,
		`time.Sleep(long)`:                                                    1,
		`time.Sleep(time.Until(end))`:                                         1,
		`<-time.After(time.Second)`:                                           1,
		`select { case <-time.After(time.Second): }`:                          1,
		`select { case <-time.After(time.Second): case <-done: }`:             0,
		`if time.Since(begin) > time.Minute { t.Error() }`:                    1,
		`if took := time.Since(begin).Round(1); took < time.Minute {}`:        1,
		`if waited := end.Sub(begin); time.Minute <= waited { t.Error() }`:    1,
		`took := time.Since(begin); t.Logf("after %s", took)`:                 0,
		`if strings.Count(text, "a") > 3 { t.Error() }`:                       0,
		`until(t, func() error { time.Sleep(time.Millisecond); return nil })`: 0,
	} {
		text := "package a\nconst poll, long = 50 * time.Millisecond, time.Second\nfunc a() {" + body + "}"
		if found := clockFaults(t, "a.go", text); len(found) != faults {
			t.Errorf("%s: %d faults instead of %d: %s", body, len(found), faults, strings.Join(found, "\n"))
		}
	}
}
