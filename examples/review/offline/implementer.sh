# It does what the last reviewer asked for, if there was one.
if grep -q "louder"; then echo "HELLO, WORLD" >greeting.txt; else echo "hello, world" >greeting.txt; fi
echo "I wrote greeting.txt."
