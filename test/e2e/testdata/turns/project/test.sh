test ! -e checks/more.sh && { test -f one.txt || test -f in/two.txt; }
