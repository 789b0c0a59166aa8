/*
 * A sketch around HEADER, whose head says what the COUNT numbers are. Written by fewkern VERSION (to_c).
 *
 * Send them as one line in the serial monitor (115200 baud), with spaces, tabs, commas or semicolons between them; it
 * answers with ANSWER. In a sketch of your own, fill x from sensors.
 */
#include "HEADER"

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    if (!Serial.available()) {
        return;
    }
    const String line = Serial.readStringUntil('\n');
    const char *text = line.c_str();
    T x[NAME_N_FEATURES];
    for (int i = 0; i < NAME_N_FEATURES; i++) {
        char *end;
        x[i] = (T)strtod(text, &end);
        if (end == text) {
            Serial.println("expected COUNT numbers");
            return;
        }
        for (text = end; *text == ' ' || *text == '\t' || *text == ',' || *text == ';'; text++) {
        }
    }
    BODY
}
